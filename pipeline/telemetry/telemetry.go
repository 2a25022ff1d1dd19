// Package telemetry counts and times turns with OpenTelemetry, for whatever
// exporter the program has. It reads what a turn's trace says, so it costs
// nothing while the turn runs, and it records no text of anyone's.
//
//	metrics, err := telemetry.New(meterProvider)
//	parts.Observe = metrics.Observe
//
// The instruments:
//
//	askback.turns              turns, by askback.result: answer, clarification, no_answer, busy, stopped or failed
//	askback.gate.decisions     decisions, by askback.gate (pre, post), askback.decision (ask, proceed) and askback.reason
//	askback.clarifier.second   what became of the second clarifier of a cascade, by askback.gate and
//	                           askback.use: spared is a call that was saved, asked, failed
//	askback.replies            replies to clarifications, by askback.reply; just_answer tells of needless asking
//	askback.stage.duration     seconds of a stage, by askback.stage
//	askback.turn.duration      seconds of a turn, by askback.result
//
// Traces makes spans of the same.
package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
)

// Scope is the name of the instrumentation scope.
const Scope = "github.com/askback/askback/pipeline"

// Metrics are the instruments that turns are counted with.
type Metrics struct {
	turns, decisions, second, replies metric.Int64Counter
	stage, turn                       metric.Float64Histogram
}

// seconds are the histograms' bounds: a gate takes milliseconds, a model's
// answer minutes.
var seconds = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120)

// New makes the instruments.
func New(provider metric.MeterProvider) (*Metrics, error) {
	meter := provider.Meter(Scope)
	m := &Metrics{}
	var errs [6]error
	m.turns, errs[0] = meter.Int64Counter("askback.turns", metric.WithUnit("{turn}"), metric.WithDescription("Turns, by result."))
	m.decisions, errs[1] = meter.Int64Counter("askback.gate.decisions", metric.WithUnit("{decision}"), metric.WithDescription("Decisions of the gates."))
	m.second, errs[2] = meter.Int64Counter("askback.clarifier.second", metric.WithUnit("{decision}"),
		metric.WithDescription("Use of a cascade's second clarifier; spared is a call that was saved."))
	m.replies, errs[3] = meter.Int64Counter("askback.replies", metric.WithUnit("{reply}"), metric.WithDescription("Replies to clarifications, by how they were understood."))
	m.stage, errs[4] = meter.Float64Histogram("askback.stage.duration", metric.WithUnit("s"), metric.WithDescription("Time of a stage of a turn."), seconds)
	m.turn, errs[5] = meter.Float64Histogram("askback.turn.duration", metric.WithUnit("s"), metric.WithDescription("Time of a turn."), seconds)
	return m, errors.Join(errs[:]...)
}

// Observe records one turn; it is for pipeline.Parts.Observe.
func (m *Metrics) Observe(ctx context.Context, r pipeline.Result, err error, elapsed time.Duration) {
	if r == nil {
		m.turns.Add(ctx, 1, metric.WithAttributes(attribute.String("askback.result", failure(ctx, err))))
		return
	}
	record := r.Record()
	result := metric.WithAttributes(attribute.String("askback.result", string(record.Kind)))
	m.turns.Add(ctx, 1, result)
	for _, d := range record.Trace.Gates {
		gate := attribute.String("askback.gate", string(d.Stage))
		m.decisions.Add(ctx, 1, metric.WithAttributes(gate, attribute.String("askback.decision", decided(d)), attribute.String("askback.reason", string(d.Reason))))
		if d.Second != "" {
			m.second.Add(ctx, 1, metric.WithAttributes(gate, attribute.String("askback.use", string(d.Second))))
		}
	}
	if reply := record.Trace.Reply; reply != nil {
		m.replies.Add(ctx, 1, metric.WithAttributes(attribute.String("askback.reply", string(reply.Kind))))
	}
	for _, s := range record.Trace.Stages {
		m.stage.Record(ctx, s.Elapsed.Seconds(), metric.WithAttributes(attribute.String("askback.stage", s.Name)))
	}
	m.turn.Record(ctx, elapsed.Seconds(), result)
}

// Outcome is how a turn ended, in a word, as in askback.result.
func Outcome(ctx context.Context, r pipeline.Result, err error) string {
	if r == nil {
		return failure(ctx, err)
	}
	return string(r.Record().Kind)
}

// failure names why a turn has no result.
func failure(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, conversation.ErrBusy):
		return "busy"
	case errors.Is(err, context.Canceled) || ctx.Err() != nil:
		return "stopped"
	}
	return "failed"
}
