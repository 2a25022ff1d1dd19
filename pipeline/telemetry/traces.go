package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
)

// Traces makes spans of turns, with the names of OpenTelemetry's GenAI conventions
// where these have one. A turn is a span "invoke_agent askback" of the trace that
// its context carries, and each stage a span below it, but for that of storing it. They hold no text of
// anyone's: no question, no answer, no passage, no message of an error.
type Traces struct {
	// Model and Provider are those that answers are written with, such as gpt-4.1
	// of openai: the span of it is then "chat gpt-4.1". "": by no model.
	Model, Provider string

	tracer trace.Tracer
}

// NewTraces makes spans with the provider's tracer.
func NewTraces(provider trace.TracerProvider) Traces { return Traces{tracer: provider.Tracer(Scope)} }

// Observe makes the spans of one turn, at its end; it is for pipeline.Parts.Observe.
func (t Traces) Observe(ctx context.Context, r pipeline.Result, err error, elapsed time.Duration) {
	end := time.Now()
	ctx, turn := t.tracer.Start(ctx, "invoke_agent askback", trace.WithTimestamp(end.Add(-elapsed)),
		trace.WithAttributes(attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", "askback")))
	defer turn.End(trace.WithTimestamp(end))
	if !turn.IsRecording() {
		return
	}
	if r == nil {
		why := failure(ctx, err)
		turn.SetAttributes(attribute.String("askback.result", why), attribute.String("error.type", errorType(err)))
		if why == "failed" {
			turn.SetStatus(codes.Error, "the turn failed")
		}
		return
	}
	record := r.Record()
	turn.SetAttributes(attribute.String("askback.result", string(record.Kind)),
		attribute.String("gen_ai.conversation.id", record.Conversation), attribute.Int("askback.turn", record.Turn))
	if record.Kind == conversation.KindClarification {
		turn.SetAttributes(attribute.String("askback.gate", string(record.Gate)))
	}
	for _, s := range record.Trace.Stages {
		if s.Began.IsZero() { // a stored one, of a turn that ran before
			continue
		}
		name, kind, attrs := s.Name, trace.SpanKindInternal, ofStage(s.Name, record.Trace)
		if name == "generate" && t.Model != "" {
			name, kind = "chat "+t.Model, trace.SpanKindClient
			attrs = append(attrs, attribute.String("gen_ai.operation.name", "chat"),
				attribute.String("gen_ai.request.model", t.Model), attribute.String("gen_ai.provider.name", t.Provider))
		}
		_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(s.Began), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
		if d, ok := decision(s.Name, record.Trace); ok && d.Error != "" {
			span.SetStatus(codes.Error, "the clarifier gave no verdict")
		}
		span.End(trace.WithTimestamp(s.Began.Add(s.Elapsed)))
	}
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
