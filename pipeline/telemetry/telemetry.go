// Package telemetry counts and times turns with OpenTelemetry, for whatever
// exporter the program has. It reads what a turn's trace says, so it costs
// nothing while the turn runs, and it records no text of anyone's.
//
//	metrics, err := telemetry.New(meterProvider)
//	metrics.Models = telemetry.Models{"generate": {Name: "granite4:micro", Provider: "ollama"}}
//	parts.Observe = metrics.Observe
//
// The instruments, of turns with a result but for the first and the last two:
//
//	askback.turns              turns, by askback.result: answer, clarification, no_answer, busy, stopped or failed
//	askback.gate.decisions     decisions, by askback.gate (pre, post), askback.decision (ask, proceed) and askback.reason
//	askback.clarifier.second   what became of the second clarifier of a cascade, by askback.gate and
//	                           askback.use: spared is a call that was saved, asked, failed
//	askback.replies            replies to clarifications, by askback.reply; just_answer tells of needless asking
//	askback.turn.duration      seconds of a turn, by askback.result
//	askback.stage.duration     seconds of a stage, whole or not, by askback.stage: see pipeline.StageTime
//	gen_ai.client.token.usage  tokens that the models asked in a stage read or wrote, by gen_ai.token.type (input,
//	                           output), askback.stage, gen_ai.operation.name (chat), gen_ai.request.model and
//	                           gen_ai.provider.name; nothing where the model's server does not count them
//
// Traces makes spans of the same.
package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
)

// Scope is the name of the instrumentation scope.
const Scope = "github.com/askback/askback/pipeline"

// Models are the language models that are asked in a stage, by its name.
type Models map[string]Model

// Model is a language model, such as gpt-4.1 of openai, as OpenTelemetry names them.
type Model struct{ Name, Provider string }

// attributes describe a call of the model, as far as it is known.
func (m Model) attributes() []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String("gen_ai.operation.name", "chat")}
	if m.Name != "" {
		out = append(out, attribute.String("gen_ai.request.model", m.Name))
	}
	if m.Provider != "" {
		out = append(out, attribute.String("gen_ai.provider.name", m.Provider))
	}
	return out
}

// Metrics are the instruments that turns are counted with.
type Metrics struct {
	Models Models // which tokens are counted of; set before the first turn

	turns, decisions, second, replies metric.Int64Counter
	stage, turn                       metric.Float64Histogram
	tokens                            metric.Int64Histogram
}

// seconds are the histograms' bounds: a gate takes milliseconds, a model's
// answer minutes.
var seconds = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120)

// tokens are the bounds that OpenTelemetry has for gen_ai.client.token.usage.
var tokens = metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)

// New makes the instruments.
func New(provider metric.MeterProvider) (*Metrics, error) {
	meter := provider.Meter(Scope)
	m := &Metrics{}
	var errs [7]error
	m.turns, errs[0] = meter.Int64Counter("askback.turns", metric.WithUnit("{turn}"), metric.WithDescription("Turns, by result."))
	m.decisions, errs[1] = meter.Int64Counter("askback.gate.decisions", metric.WithUnit("{decision}"), metric.WithDescription("Decisions of the gates."))
	m.second, errs[2] = meter.Int64Counter("askback.clarifier.second", metric.WithUnit("{decision}"),
		metric.WithDescription("Use of a cascade's second clarifier; spared is a call that was saved."))
	m.replies, errs[3] = meter.Int64Counter("askback.replies", metric.WithUnit("{reply}"), metric.WithDescription("Replies to clarifications, by how they were understood."))
	m.stage, errs[4] = meter.Float64Histogram("askback.stage.duration", metric.WithUnit("s"), metric.WithDescription("Time of a stage of a turn."), seconds)
	m.turn, errs[5] = meter.Float64Histogram("askback.turn.duration", metric.WithUnit("s"), metric.WithDescription("Time of a turn."), seconds)
	m.tokens, errs[6] = meter.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Number of input and output tokens used."), tokens)
	return m, errors.Join(errs[:]...)
}

// Observe records one turn; it is for pipeline.Parts.Observe.
func (m *Metrics) Observe(ctx context.Context, o pipeline.Outcome) {
	result := metric.WithAttributes(attribute.String("askback.result", Ended(ctx, o)))
	m.turns.Add(ctx, 1, result)
	for _, s := range o.Trace.Stages {
		m.observeStage(ctx, s)
	}
	if o.Result == nil {
		return
	}
	m.turn.Record(ctx, o.Elapsed.Seconds(), result)
	for _, d := range o.Trace.Gates {
		gate := attribute.String("askback.gate", string(d.Stage))
		m.decisions.Add(ctx, 1, metric.WithAttributes(gate, attribute.String("askback.decision", decided(d)), attribute.String("askback.reason", string(d.Reason))))
		if d.Second != "" {
			m.second.Add(ctx, 1, metric.WithAttributes(gate, attribute.String("askback.use", string(d.Second))))
		}
	}
	if reply := o.Trace.Reply; reply != nil {
		m.replies.Add(ctx, 1, metric.WithAttributes(attribute.String("askback.reply", string(reply.Kind))))
	}
}

func (m *Metrics) observeStage(ctx context.Context, s pipeline.StageTime) {
	stage := attribute.String("askback.stage", s.Name)
	m.stage.Record(ctx, s.Elapsed.Seconds(), metric.WithAttributes(stage))
	for kind, n := range map[string]int{"input": s.Usage.Input, "output": s.Usage.Output} {
		if n > 0 {
			attrs := append(m.Models[s.Name].attributes(), stage, attribute.String("gen_ai.token.type", kind))
			m.tokens.Record(ctx, int64(n), metric.WithAttributes(attrs...))
		}
	}
}

// Ended is how a turn ended, in a word, as in askback.result.
func Ended(ctx context.Context, o pipeline.Outcome) string {
	if o.Result == nil {
		return failure(ctx, o.Err)
	}
	return string(o.Result.Record().Kind)
}

// failure names why a turn has no result, or a stage has not ended.
func failure(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, conversation.ErrBusy):
		return "busy"
	case errors.Is(err, context.Canceled) || ctx.Err() != nil:
		return "stopped"
	}
	return "failed"
}
