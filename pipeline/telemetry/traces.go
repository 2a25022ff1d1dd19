package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
)

// Traces makes spans of turns, with the names of OpenTelemetry's GenAI conventions
// where these have one. A turn is a span "invoke_agent askback" of the trace that
// its context carries, and each stage a span below it, also of a turn that failed or
// was stopped. They hold no text of anyone's: no question, no answer, no passage, no
// message of an error.
type Traces struct {
	// Models are those that are asked. The span of the stage "generate" is named after
	// its model, as in "chat gpt-4.1".
	Models Models

	tracer trace.Tracer
}

// NewTraces makes spans with the provider's tracer.
func NewTraces(provider trace.TracerProvider) Traces { return Traces{tracer: provider.Tracer(Scope)} }

// Observe makes the spans of one turn, at its end; it is for pipeline.Parts.Observe.
func (t Traces) Observe(ctx context.Context, o pipeline.Outcome) {
	ctx, turn := t.tracer.Start(ctx, "invoke_agent askback", trace.WithTimestamp(o.Began),
		trace.WithAttributes(attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", "askback")))
	defer turn.End(trace.WithTimestamp(o.Began.Add(o.Elapsed)))
	if !turn.IsRecording() {
		return
	}
	turn.SetAttributes(attribute.String("askback.result", Ended(ctx, o)))
	turn.SetAttributes(used(o.Trace.Usage())...)
	if o.Result == nil {
		fails(ctx, turn, o.Err, "the turn failed")
	} else {
		record := o.Result.Record()
		turn.SetAttributes(attribute.String("gen_ai.conversation.id", record.Conversation), attribute.Int("askback.turn", record.Turn))
		if record.Kind == conversation.KindClarification {
			turn.SetAttributes(attribute.String("askback.gate", string(record.Gate)))
		}
	}
	for _, s := range o.Trace.Stages {
		t.stage(ctx, s, o.Trace)
	}
}

// stage makes the span of a stage.
func (t Traces) stage(ctx context.Context, s pipeline.StageTime, of pipeline.Trace) {
	name, kind, attrs := s.Name, trace.SpanKindInternal, append(ofStage(s.Name, of), used(s.Usage)...)
	model := t.Models[s.Name]
	if name == "generate" && model.Name != "" {
		name, kind = "chat "+model.Name, trace.SpanKindClient
	}
	if kind == trace.SpanKindClient || s.Usage != (conversation.Usage{}) {
		attrs = append(attrs, model.attributes()...)
	}
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(s.Began), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	if d, ok := decision(s.Name, of); ok && d.Error != "" {
		span.SetStatus(codes.Error, "the clarifier gave no verdict")
	}
	if s.Err != nil {
		fails(ctx, span, s.Err, "the stage failed")
	}
	span.End(trace.WithTimestamp(s.Began.Add(s.Elapsed)))
}

// fails says why a span's work came to nothing. That it was stopped, or that another
// turn ran, is no error of its own.
func fails(ctx context.Context, span trace.Span, err error, what string) {
	span.SetAttributes(attribute.String("error.type", errorType(err)))
	if failure(ctx, err) == "failed" {
		span.SetStatus(codes.Error, what)
	}
}

// used is what models read and wrote, as far as it is known.
func used(u conversation.Usage) (attrs []attribute.KeyValue) {
	if u.Input > 0 {
		attrs = append(attrs, attribute.Int("gen_ai.usage.input_tokens", u.Input))
	}
	if u.Output > 0 {
		attrs = append(attrs, attribute.Int("gen_ai.usage.output_tokens", u.Output))
	}
	return attrs
}

// ofStage is what the span of a stage says.
func ofStage(name string, t pipeline.Trace) []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String("askback.stage", name)}
	switch name {
	case "retrieve":
		return append(out, attribute.String("gen_ai.operation.name", "retrieval"), attribute.Int("askback.passages", len(t.Passages)))
	case "fold":
		if t.Reply != nil {
			return append(out, attribute.String("askback.reply", string(t.Reply.Kind)), attribute.String("askback.reply.rule", t.Reply.Rule))
		}
	}
	if d, ok := decision(name, t); ok {
		out = append(out, attribute.String("askback.gate", string(d.Stage)), attribute.String("askback.decision", decided(d)),
			attribute.Float64("askback.score", d.Score), attribute.Float64("askback.threshold", d.Threshold), attribute.String("askback.reason", string(d.Reason)))
		for key, value := range map[attribute.Key]string{"askback.clarifier": d.Clarifier, "askback.use": string(d.Second)} {
			if value != "" {
				out = append(out, key.String(value))
			}
		}
	}
	return out
}

// decision is what the gate of that stage decided.
func decision(stage string, t pipeline.Trace) (gate.Decision, bool) {
	for _, d := range t.Gates {
		if "gate "+string(d.Stage) == stage {
			return d, true
		}
	}
	return gate.Decision{}, false
}

// decided is a decision in a word.
func decided(d gate.Decision) string {
	if d.Ask {
		return "ask"
	}
	return "proceed"
}

// errorType is the type of the innermost error, which no text can get into.
func errorType(err error) string {
	if errors.Is(err, context.Canceled) {
		return "cancelled"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}
