package telemetry_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/telemetry"
)

// BenchmarkObserve is what a turn costs more with metrics and spans; without them
// nothing is called.
func BenchmarkObserve(b *testing.B) {
	metrics, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	if err != nil {
		b.Fatal(err)
	}
	metrics.Models = telemetry.Models{"generate": {Name: "larkwheel-7b", Provider: "ollama"}}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	defer provider.Shutdown(b.Context())
	traces := telemetry.NewTraces(provider)
	traces.Models = metrics.Models
	at := time.Now()
	trace := pipeline.Trace{
		Gates: []gate.Decision{{Stage: gate.Pre, Reason: gate.ReasonClear}, {Stage: gate.Post, Reason: gate.ReasonClear}},
		Stages: []pipeline.StageTime{{Name: "claim", Elapsed: 1e6, Began: at}, {Name: "gate pre", Elapsed: 1e6, Began: at},
			{Name: "retrieve", Elapsed: 1e6, Began: at}, {Name: "gate post", Elapsed: 1e6, Began: at}, {Name: "generate", Elapsed: 1e6, Began: at, Usage: conversation.Usage{Input: 900, Output: 60}}, {Name: "commit", Elapsed: 1e6, Began: at}},
	}
	o := pipeline.Outcome{Result: &pipeline.Answer{Turn: pipeline.Turn{Conversation: "a", Number: 1, Trace: trace}}, Began: at, Elapsed: 5e6, Trace: trace}
	for b.Loop() {
		metrics.Observe(b.Context(), o)
		traces.Observe(b.Context(), o)
	}
}
