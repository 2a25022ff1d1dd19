package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/telemetry"
	"github.com/askback/askback/server"
)

// observer is told of each turn at its end, as pipeline.Parts.Observe.
type observer = func(context.Context, pipeline.Outcome)

// observers tells all of them, in order.
func observers(all ...observer) observer {
	return func(ctx context.Context, o pipeline.Outcome) {
		for _, observe := range all {
			observe(ctx, o)
		}
	}
}

// newLog writes the log in the format that was asked for, from that level on.
func newLog(format string, level slog.Level, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// logged writes one line a turn, without text of anyone's.
func logged(log *slog.Logger) observer {
	return func(ctx context.Context, o pipeline.Outcome) {
		level, attrs := slog.LevelInfo, []slog.Attr{slog.String("result", telemetry.Ended(ctx, o)), slog.Duration("elapsed", o.Elapsed)}
		if o.Result == nil {
			level = slog.LevelWarn
		} else {
			record := o.Result.Record()
			attrs = append(attrs, slog.String("conversation", record.Conversation), slog.Int("turn", record.Turn))
			if record.Gate != "" {
				attrs = append(attrs, slog.String("gate", string(record.Gate)))
			}
		}
		if u := o.Trace.Usage(); u != (conversation.Usage{}) {
			attrs = append(attrs, slog.Int("input_tokens", u.Input), slog.Int("output_tokens", u.Output))
		}
		if id := server.RequestID(ctx); id != "" {
			attrs = append(attrs, slog.String("request", id))
		}
		if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
			attrs = append(attrs, slog.String("trace_id", c.TraceID().String()))
		}
		log.LogAttrs(ctx, level, "turn", attrs...)
	}
}

// asked are the language models that the stages of a turn ask.
func (c *serveCommand) asked() telemetry.Models {
	named := func(name string) telemetry.Model {
		if remote, ok := strings.CutPrefix(name, openAIPrefix); ok {
			return telemetry.Model{Name: remote, Provider: "openai"}
		}
		return telemetry.Model{Name: name, Provider: "ollama"}
	}
	asked := telemetry.Models{}
	if c.ChatModel != "" {
		for _, stage := range []string{"generate", "rewrite", "fold"} {
			asked[stage] = named(c.ChatModel)
		}
	}
	if c.ClarifierModel != "" {
		for _, stage := range []string{"gate pre", "gate post"} {
			asked[stage] = named(strings.TrimPrefix(c.ClarifierModel, promptedPrefix))
		}
	}
	return asked
}

// sendTime is how long the end of the program waits until the last spans are sent.
const sendTime = 2 * time.Second

// newTraces makes spans of turns, if a variable of OpenTelemetry says where to send
// them, and gives what sends the last ones.
func newTraces(ctx context.Context) (telemetry.Traces, func() error, error) {
	nowhere := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == ""
	if nowhere || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return telemetry.NewTraces(noop.NewTracerProvider()), func() error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx) // which reads the rest of them
	if err != nil {
		return telemetry.Traces{}, nil, usagef("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "askback"), attribute.String("service.version", version())), resource.WithFromEnv())
	if err != nil {
		return telemetry.Traces{}, nil, usagef("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	end := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), sendTime)
		defer cancel()
		return provider.Shutdown(ctx)
	}
	return telemetry.NewTraces(provider), end, nil
}

// continued lets turns be a part of the trace that a request's traceparent names.
func continued(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// readOnly refuses what is not GET or HEAD.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, r.Method+" is not possible here; possible are GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}
