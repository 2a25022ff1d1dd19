package telemetry_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

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
	provider := trace.NewTracerProvider(trace.WithBatcher(tracetest.NewNoopExporter()))
	defer provider.Shutdown(b.Context())
	traces := telemetry.NewTraces(provider)
	at := time.Now()
	turn := &pipeline.Answer{Turn: pipeline.Turn{Conversation: "a", Number: 1, Trace: pipeline.Trace{
		Gates: []gate.Decision{{Stage: gate.Pre, Reason: gate.ReasonClear}, {Stage: gate.Post, Reason: gate.ReasonClear}},
		Stages: []pipeline.StageTime{{Name: "claim", Elapsed: 1e6, Began: at}, {Name: "gate pre", Elapsed: 1e6, Began: at},
			{Name: "retrieve", Elapsed: 1e6, Began: at}, {Name: "gate post", Elapsed: 1e6, Began: at}, {Name: "generate", Elapsed: 1e6, Began: at}},
	}}}
	for b.Loop() {
		metrics.Observe(b.Context(), turn, nil, 5e6)
		traces.Observe(b.Context(), turn, nil, 5e6)
	}
}
