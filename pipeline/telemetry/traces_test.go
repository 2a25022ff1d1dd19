package telemetry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/telemetry"
	"github.com/askback/askback/retrieval/minilm"
)

// TestTraces looks at the spans of turns of each kind.
func TestTraces(t *testing.T) {
	embedder, err := minilm.New()
	if err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	traces := telemetry.NewTraces(provider)
	traces.Models = telemetry.Models{"generate": {Name: "larkwheel-7b", Provider: "ollama"}}
	p, err := pipeline.New(pipeline.Parts{
		Retriever: scripted{}, Generator: generation.Extractive{Embedder: embedder}, Observe: traces.Observe, Clarifier: scripted{},
	})
	if err != nil {
		t.Fatal(err)
	}
	above := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: oteltrace.TraceID{1}, SpanID: oteltrace.SpanID{2}, TraceFlags: oteltrace.FlagsSampled, Remote: true})
	ctx := oteltrace.ContextWithRemoteSpanContext(t.Context(), above)
	for _, c := range []struct {
		name   string
		m      pipeline.Message
		stages []string // in any order
		has    []string // among the attributes of all spans
		status codes.Code
	}{
		{"answered", pipeline.Message{Text: "In how many hours does the battery charge?", Conversation: "a"},
			[]string{"chat larkwheel-7b", "claim", "commit", "gate post", "gate pre", "retrieve"},
			[]string{"gen_ai.operation.name=chat", "gen_ai.request.model=larkwheel-7b", "gen_ai.provider.name=ollama", "askback.result=answer", "gen_ai.conversation.id=a", "gen_ai.operation.name=invoke_agent", "gen_ai.operation.name=retrieval", "askback.score=0.1", "askback.reason=clear", "askback.decision=proceed"}, codes.Unset},
		{"asked at gate 1", pipeline.Message{Text: "How long does it take?", Conversation: "b"},
			[]string{"claim", "commit", "gate pre"},
			[]string{"askback.result=clarification", "askback.gate=pre", "askback.decision=ask", "askback.score=0.9", "askback.threshold=" + fmt.Sprint(gate.Gate{Clarifier: scripted{}}.Threshold(gate.Pre))}, codes.Unset},
		{"asked at gate 2", pipeline.Message{Text: "In how many hours does either battery charge?", Conversation: "e"},
			[]string{"claim", "commit", "gate post", "gate pre", "retrieve"},
			[]string{"askback.result=clarification", "askback.gate=post", "askback.decision=ask", "askback.score=0.8", "askback.threshold=" + fmt.Sprint(gate.Gate{Clarifier: scripted{}}.Threshold(gate.Post))}, codes.Unset},
		{"folded", pipeline.Message{Text: "just answer", Conversation: "b"},
			nil, []string{"askback.reply=just_answer"}, codes.Unset},
		{"failed", pipeline.Message{Text: "Is the battery broken?", Conversation: "c"}, []string{"claim", "gate pre", "retrieve"}, []string{"askback.result=failed", "error.type=*errors.errorString"}, codes.Error},
		{"cancelled", pipeline.Message{Text: "Is the battery empty?", Conversation: "d"}, []string{"claim"}, []string{"askback.result=stopped", "error.type=cancelled"}, codes.Unset},
	} {
		t.Run(c.name, func(t *testing.T) {
			spans.Reset()
			for range p.Stream(ctx, c.m) { // the spans tell of errors
				if c.name == "cancelled" {
					break
				}
			}
			var stages, has []string
			all := spans.GetSpans()
			if len(all) == 0 {
				t.Fatal("there are no spans")
			}
			turn := all[len(all)-1] // it ends last
			if turn.Name != "invoke_agent askback" || turn.Parent.SpanID() != above.SpanID() || turn.Status.Code != c.status {
				t.Errorf("the last span is %s below %s, with status %v", turn.Name, turn.Parent.SpanID(), turn.Status)
			}
			for _, s := range all {
				if s.SpanContext.TraceID() != above.TraceID() {
					t.Errorf("%s is in another trace", s.Name)
				}
				if s.EndTime.Before(s.StartTime) || s.StartTime.Before(turn.StartTime) || s.EndTime.After(turn.EndTime) {
					t.Errorf("%s is outside the turn's time", s.Name)
				}
				if s.SpanContext.SpanID() != turn.SpanContext.SpanID() {
					stages = append(stages, s.Name)
					if s.Parent.SpanID() != turn.SpanContext.SpanID() {
						t.Errorf("%s is not below the turn", s.Name)
					}
				}
				for _, a := range s.Attributes {
					has = append(has, string(a.Key)+"="+a.Value.String())
				}
				for _, word := range []string{"battery", "Battery", "hours", "How long", "just answer", "What is", "sk-secret"} {
					if text := fmt.Sprint(s.Attributes, s.Events, s.Status, s.Name); strings.Contains(text, word) {
						t.Errorf("%s holds text of somebody's: %s", s.Name, text)
					}
				}
			}
			slices.Sort(stages)
			if c.stages != nil && !slices.Equal(stages, c.stages) {
				t.Errorf("stages %q, want %q", stages, c.stages)
			}
			for _, want := range c.has {
				if !slices.Contains(has, want) {
					t.Errorf("no %s among %q", want, has)
				}
			}
		})
	}
}
