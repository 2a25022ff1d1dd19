package telemetry_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/prompted"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/langchain"
	"github.com/askback/askback/pipeline/telemetry"
	"github.com/askback/askback/retrieval/minilm"
)

// counted is a model that says its replies one after the other, streams them if asked
// to, and counts 100 tokens read and 10 written the first time, one of each more every
// time.
type counted struct {
	replies []string
	stop    string // why the last one ended; "": it is whole
	calls   int
	silent  bool // does not count
}

func (m *counted) GenerateContent(ctx context.Context, _ []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	if m.calls == len(m.replies) {
		return nil, errors.New("a call too many")
	}
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	said, stop := m.replies[m.calls], ""
	m.calls++
	if m.calls == len(m.replies) {
		stop = m.stop
	}
	if o.StreamingFunc != nil {
		for _, piece := range strings.SplitAfter(said, " ") {
			if err := o.StreamingFunc(ctx, []byte(piece)); err != nil {
				return nil, err
			}
		}
	}
	info := map[string]any{"PromptTokens": 99 + m.calls, "CompletionTokens": 9 + m.calls}
	if m.silent {
		info = nil
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: said, StopReason: stop, GenerationInfo: info}}}, nil
}

func (m *counted) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// TestTokens asks models in every stage that may ask one, and looks for what they
// counted in the metric, the spans and the trace; a call that came to nothing counts.
func TestTokens(t *testing.T) {
	const answered = "ANSWER: The battery charges in 6 hours. [1]"
	asked := pipeline.Message{Text: "In how many hours does the battery maybe charge?"}
	for _, c := range []struct {
		name      string
		messages  []pipeline.Message
		generator *counted // nil: none
		clarifier *counted // of the cascade
		reader    *counted // of replies and follow-ups
		want      map[string]int64
		span      map[string]string // of the last turn: the tokens of each span that has some
		last      conversation.Usage
	}{
		{"an answer, streamed", []pipeline.Message{{Text: "In how many hours does the battery charge?"}}, &counted{replies: []string{answered}}, nil, nil,
			map[string]int64{"chat ollama larkwheel-7b input generate": 100, "chat ollama larkwheel-7b output generate": 10},
			map[string]string{"invoke_agent askback": "100 10", "chat larkwheel-7b": "100 10"}, conversation.Usage{Input: 100, Output: 10}},
		{"both gates, one of them twice", []pipeline.Message{asked}, &counted{replies: []string{answered}},
			&counted{replies: []string{"well", `{"clarification": "CLEAR"}`, `{"clarification": "CLEAR"}`}}, nil,
			map[string]int64{"chat ollama larkwheel-7b input generate": 100, "chat ollama larkwheel-7b output generate": 10,
				"chat openai clear-1b input gate pre": 201, "chat openai clear-1b output gate pre": 21,
				"chat openai clear-1b input gate post": 102, "chat openai clear-1b output gate post": 12},
			map[string]string{"invoke_agent askback": "403 43", "gate pre": "201 21", "gate post": "102 12", "chat larkwheel-7b": "100 10"}, conversation.Usage{Input: 403, Output: 43}},
		{"a clarifier that fails has read all the same", []pipeline.Message{asked}, nil, &counted{replies: []string{"well", "well", "well", "well"}}, nil,
			map[string]int64{"chat openai clear-1b input gate pre": 201, "chat openai clear-1b output gate pre": 21,
				"chat openai clear-1b input gate post": 205, "chat openai clear-1b output gate post": 25},
			map[string]string{"invoke_agent askback": "406 46", "gate pre": "201 21", "gate post": "205 25"}, conversation.Usage{Input: 406, Output: 46}},
		{"a reply that is read", []pipeline.Message{{Text: "How long does it take?"}, {Text: "the thing I charge the bike with at night"}}, nil, nil,
			&counted{replies: []string{`{"kind": "detail", "options": [], "detail": "the thing I charge the bike with at night"}`}},
			map[string]int64{"chat ollama ear-3b input fold": 100, "chat ollama ear-3b output fold": 10},
			map[string]string{"invoke_agent askback": "100 10", "fold": "100 10"}, conversation.Usage{Input: 100, Output: 10}},
		{"a follow-up that is rewritten", []pipeline.Message{{Text: "In how many hours does the battery charge?"}, {Text: "And the charger?"}}, nil, nil,
			&counted{replies: []string{`{"question": "In how many hours does the charger charge?"}`}},
			map[string]int64{"chat ollama ear-3b input rewrite": 100, "chat ollama ear-3b output rewrite": 10},
			map[string]string{"invoke_agent askback": "100 10", "rewrite": "100 10"}, conversation.Usage{Input: 100, Output: 10}},
		{"an answer that was cut", []pipeline.Message{{Text: "In how many hours does the battery charge?"}}, &counted{replies: []string{"ANSWER: The battery"}, stop: "length"}, nil, nil,
			map[string]int64{"chat ollama larkwheel-7b input generate": 100, "chat ollama larkwheel-7b output generate": 10},
			map[string]string{"invoke_agent askback": "100 10", "chat larkwheel-7b": "100 10"}, conversation.Usage{Input: 100, Output: 10}},
		{"a server that does not count", []pipeline.Message{asked}, &counted{replies: []string{answered}, silent: true}, nil, nil,
			map[string]int64{}, map[string]string{}, conversation.Usage{}},
		{"no model", []pipeline.Message{{Text: "In how many hours does the battery charge?"}}, nil, nil, nil,
			map[string]int64{}, map[string]string{}, conversation.Usage{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reader := metric.NewManualReader()
			metrics, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(reader)))
			if err != nil {
				t.Fatal(err)
			}
			spans := tracetest.NewInMemoryExporter()
			traces := telemetry.NewTraces(trace.NewTracerProvider(trace.WithSyncer(spans)))
			clarifier, writer, ear := telemetry.Model{Name: "clear-1b", Provider: "openai"}, telemetry.Model{Name: "larkwheel-7b", Provider: "ollama"}, telemetry.Model{Name: "ear-3b", Provider: "ollama"}
			metrics.Models = telemetry.Models{"gate pre": clarifier, "gate post": clarifier, "fold": ear, "rewrite": ear}
			var last pipeline.Outcome
			parts := pipeline.Parts{Retriever: scripted{}, Clarifier: scripted{}, Observe: func(ctx context.Context, o pipeline.Outcome) {
				last = o
				metrics.Observe(ctx, o)
				traces.Observe(ctx, o)
			}}
			if c.generator != nil {
				metrics.Models["generate"] = writer
				parts.Generator = generation.Model{LLM: c.generator}
			} else {
				embedder, err := minilm.New()
				if err != nil {
					t.Fatal(err)
				}
				parts.Generator = generation.Extractive{Embedder: embedder}
			}
			traces.Models = metrics.Models
			if c.clarifier != nil {
				second, err := prompted.New(c.clarifier, prompted.Options{})
				if err != nil {
					t.Fatal(err)
				}
				band := gate.Band{Low: .3, High: .5}
				parts.Clarifier = gate.Cascade{Screen: scripted{}, Second: second, Bands: map[gate.Stage]gate.Band{gate.Pre: band, gate.Post: band}}
			}
			if c.reader != nil {
				r, err := langchain.NewReader(c.reader)
				if err != nil {
					t.Fatal(err)
				}
				parts.Readers, parts.Rewriter = []conversation.Reader{r}, r
			}
			p, err := pipeline.New(parts)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.messages {
				spans.Reset()
				for range p.Stream(t.Context(), m) { // the trace tells of errors
				}
			}
			if got := last.Trace.Usage(); got != c.last {
				t.Errorf("the trace counts %+v, want %+v: %+v, %v", got, c.last, last.Trace, last.Err)
			}
			if last.Result != nil && last.Result.Record().Trace.Usage() != c.last {
				t.Errorf("the result's trace counts %+v, want %+v", last.Result.Record().Trace.Usage(), c.last)
			}
			got := map[string]int64{}
			for name, n := range points(t, reader) {
				if labels, ok := strings.CutPrefix(name, "gen_ai.client.token.usage "); ok {
					got[swapped(labels)] = n
				}
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("counted %v, want %v", got, c.want)
			}
			seen := map[string]string{}
			for _, s := range spans.GetSpans() {
				of := map[string]string{}
				for _, a := range s.Attributes {
					of[string(a.Key)] = a.Value.String()
				}
				in, out := of["gen_ai.usage.input_tokens"], of["gen_ai.usage.output_tokens"]
				if in+out == "" {
					continue
				}
				seen[s.Name] = in + " " + out
				if stage := of["askback.stage"]; stage != "" && (of["gen_ai.request.model"] != metrics.Models[stage].Name || of["gen_ai.provider.name"] != metrics.Models[stage].Provider) {
					t.Errorf("%s has the attributes %v", s.Name, of)
				}
			}
			if !maps.Equal(seen, c.span) {
				t.Errorf("spans with tokens %v, want %v", seen, c.span)
			}
		})
	}
}

// swapped puts the labels of gen_ai.client.token.usage, which come in the order of
// their keys, with the stage last.
func swapped(labels string) string {
	for _, stage := range []string{"gate pre", "gate post", "generate", "fold", "rewrite"} {
		if rest, ok := strings.CutPrefix(labels, stage+" "); ok {
			return rest + " " + stage
		}
	}
	return labels
}

// TestTokenBounds holds the histogram to the bounds, the unit and the labels of
// OpenTelemetry's conventions; a model that is not named has no label.
func TestTokenBounds(t *testing.T) {
	reader := metric.NewManualReader()
	metrics, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	metrics.Observe(t.Context(), pipeline.Outcome{Err: errors.New("no"), Trace: pipeline.Trace{Stages: []pipeline.StageTime{{Name: "generate", Usage: conversation.Usage{Output: 5}}}}})
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "gen_ai.client.token.usage" {
			continue
		}
		h, ok := m.Data.(metricdata.Histogram[int64])
		if !ok || m.Unit != "{token}" || len(h.DataPoints) != 1 {
			t.Fatalf("%+v", m)
		}
		p := h.DataPoints[0]
		bounds := p.Bounds
		for i, b := range bounds {
			if i > 0 && b != 4*bounds[i-1] {
				t.Errorf("bounds %v", bounds)
			}
		}
		if len(bounds) != 14 || bounds[0] != 1 || bounds[13] != 67108864 || p.Attributes.Len() != 3 {
			t.Errorf("bounds %v, labels %v", bounds, p.Attributes)
		}
		return
	}
	t.Error("there is no gen_ai.client.token.usage")
}

// broken is a store whose parts fail as they are told to.
type broken struct {
	conversation.Store
	begin, commit error
}

type brokenClaim struct {
	conversation.Claim
	err error
}

func (s broken) Begin(ctx context.Context, r conversation.Request) (conversation.Claim, error) {
	if s.begin != nil {
		return nil, s.begin
	}
	c, err := s.Store.Begin(ctx, r)
	return brokenClaim{c, s.commit}, err
}

func (c brokenClaim) Commit(ctx context.Context, to *conversation.Conversation) error {
	if c.err != nil {
		return c.err
	}
	return c.Claim.Commit(ctx, to)
}

// waiting is a clarifier that waits for the end of the context.
type waiting struct{}

func (waiting) Clarify(ctx context.Context, _ gate.Request) (gate.Verdict, error) {
	<-ctx.Done()
	return gate.Verdict{}, ctx.Err()
}

// TestFailedStages lets each stage fail or be stopped: it and those before it have
// their spans and are timed.
func TestFailedStages(t *testing.T) {
	disk := errors.New("with the key sk-secret: the disk is full")
	type expect = map[string]string // stages, with the error's type and the status where it failed
	for _, c := range []struct {
		name      string
		text      string
		store     broken
		generator *counted
		clarifier gate.Clarifier
		stopAt    string // the event at which the reader leaves, or "cancel"
		result    string
		want      expect
	}{
		{"claim", "In how many hours does the battery charge?", broken{begin: disk}, nil, scripted{}, "", "failed",
			expect{"claim": "*errors.errorString Error"}},
		{"claim, busy", "In how many hours does the battery charge?", broken{begin: conversation.ErrBusy}, nil, scripted{}, "", "busy",
			expect{"claim": "*errors.errorString Unset"}},
		{"retrieve", "Is the battery broken?", broken{}, nil, scripted{}, "", "failed",
			expect{"claim": "", "gate pre": "", "retrieve": "*errors.errorString Error"}},
		{"generate", "In how many hours does the battery charge?", broken{}, &counted{}, scripted{}, "", "failed",
			expect{"claim": "", "gate pre": "", "retrieve": "", "gate post": "", "generate": "*errors.errorString Error"}},
		{"commit", "In how many hours does the battery charge?", broken{commit: disk}, nil, scripted{}, "", "failed",
			expect{"claim": "", "gate pre": "", "retrieve": "", "gate post": "", "generate": "", "commit": "*errors.errorString Error", "keep": "*errors.errorString Error"}},
		{"the reader leaves in the answer", "In how many hours does the battery charge?", broken{}, &counted{replies: []string{"ANSWER: The battery charges in 6 hours. [1] And so on. [1]"}}, scripted{}, "pipeline.Delta", "stopped",
			expect{"claim": "", "gate pre": "", "retrieve": "", "gate post": "", "generate": "cancelled Unset", "keep": ""}},
		{"stopped in gate 1", "In how many hours does the battery charge?", broken{}, nil, waiting{}, "cancel", "stopped",
			expect{"claim": "", "gate pre": "cancelled Unset", "retrieve": ""}},
		{"none", "In how many hours does the battery charge?", broken{}, nil, scripted{}, "", "answer",
			expect{"claim": "", "gate pre": "", "retrieve": "", "gate post": "", "generate": "", "commit": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reader := metric.NewManualReader()
			metrics, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(reader)))
			if err != nil {
				t.Fatal(err)
			}
			spans := tracetest.NewInMemoryExporter()
			traces := telemetry.NewTraces(trace.NewTracerProvider(trace.WithSyncer(spans)))
			store := c.store
			store.Store = conversation.NewMemory()
			embedder, err := minilm.New()
			if err != nil {
				t.Fatal(err)
			}
			parts := pipeline.Parts{Retriever: scripted{}, Clarifier: c.clarifier, Store: store, Generator: generation.Extractive{Embedder: embedder},
				Observe: func(ctx context.Context, o pipeline.Outcome) {
					metrics.Observe(ctx, o)
					traces.Observe(ctx, o)
				}}
			if c.generator != nil {
				parts.Generator = generation.Model{LLM: c.generator}
			}
			p, err := pipeline.New(parts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for e := range p.Stream(ctx, pipeline.Message{Text: c.text}) {
				if _, ok := e.(pipeline.Understood); ok && c.stopAt == "cancel" {
					cancel()
				}
				if _, ok := e.(pipeline.Delta); ok && c.stopAt == "pipeline.Delta" {
					break
				}
			}
			all := spans.GetSpans()
			if len(all) == 0 {
				t.Fatal("there are no spans")
			}
			turn, got, timed := all[len(all)-1], expect{}, expect{}
			for _, s := range all {
				of := map[string]string{}
				for _, a := range s.Attributes {
					of[string(a.Key)] = a.Value.String()
				}
				if s.SpanContext.SpanID() == turn.SpanContext.SpanID() {
					if of["askback.result"] != c.result {
						t.Errorf("the turn's result is %s, want %s", of["askback.result"], c.result)
					}
					continue
				}
				if s.Parent.SpanID() != turn.SpanContext.SpanID() || s.EndTime.Before(s.StartTime) || s.StartTime.Before(turn.StartTime) || s.EndTime.After(turn.EndTime) {
					t.Errorf("%s is not below the turn, or outside its time", s.Name)
				}
				got[s.Name] = of["error.type"]
				if of["error.type"] != "" {
					got[s.Name] += " " + s.Status.Code.String()
				} else if s.Status.Code != codes.Unset {
					t.Errorf("%s has the status %v", s.Name, s.Status)
				}
				if strings.Contains(s.Status.Description, "secret") {
					t.Errorf("%s tells the error's text: %s", s.Name, s.Status.Description)
				}
			}
			if c.name == "stopped in gate 1" {
				got["retrieve"] = "" // it may have ended before, or not
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("spans %v, want %v", got, c.want)
			}
			for name := range points(t, reader) {
				if stage, ok := strings.CutPrefix(name, "askback.stage.duration "); ok {
					timed[stage] = c.want[stage]
				}
			}
			if !maps.Equal(timed, c.want) {
				t.Errorf("timed %v, want %v", timed, c.want)
			}
		})
	}
}
