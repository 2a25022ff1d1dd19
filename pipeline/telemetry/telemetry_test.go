package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/telemetry"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/minilm"
)

// scripted is a clarifier that asks about what says "it", and at gate 2 "either", is unsure of what
// says "maybe", and a retriever of one passage that fails on "broken".
type scripted struct{}

func (scripted) Clarify(_ context.Context, r gate.Request) (gate.Verdict, error) {
	v := gate.Verdict{Score: .1}
	switch {
	case strings.Contains(r.Question, "it ") && r.Stage == gate.Pre:
		v = gate.Verdict{Score: .9, Clarification: "What is it about?"}
	case strings.Contains(r.Question, "either") && r.Stage == gate.Post:
		v = gate.Verdict{Score: .8, Clarification: "What battery is it about?"}
	case strings.Contains(r.Question, "maybe"):
		v.Score = .4
	}
	return v, nil
}

func (scripted) Retrieve(_ context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	if strings.Contains(q.Texts[0], "broken") {
		return nil, fmt.Errorf("with the key sk-secret: %w", iotest.ErrTimeout)
	}
	return []retrieval.Passage{{ID: "a#1", Document: "a", Title: "Battery", Text: "The battery charges in 6 hours.", Score: 1},
		{ID: "b#1", Document: "b", Title: "Charger", Text: "The charger of the battery charges it in 6 hours.", Score: .9}}, nil
}

func TestObserve(t *testing.T) {
	reader := metric.NewManualReader()
	metrics, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	embedder, err := minilm.New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.New(pipeline.Parts{
		Retriever: scripted{}, Generator: generation.Extractive{Embedder: embedder}, Observe: metrics.Observe,
		Clarifier: gate.Cascade{Screen: scripted{}, Second: scripted{}, Bands: map[gate.Stage]gate.Band{gate.Pre: {Low: .3, High: .5}, gate.Post: {Low: .3, High: .5}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []pipeline.Message{
		{Text: "In how many hours does the battery charge?", Key: "1"},
		{Text: "In how many hours does the battery charge?", Key: "1"}, // again: no turn of its own
		{Text: "How long does it take?", Conversation: "b"},
		{Text: "just answer", Conversation: "b"},
		{Text: "In how many hours does the battery maybe charge?", Conversation: "c"},
		{Text: "Is the battery broken?", Conversation: "d"},
	} {
		if _, err := p.Ask(t.Context(), m); err != nil && !errors.Is(err, iotest.ErrTimeout) {
			t.Fatal(err)
		}
	}
	for range p.Stream(t.Context(), pipeline.Message{Text: "In how many hours does the battery charge?"}) {
		break // the reader leaves
	}
	got := points(t, reader)
	want := map[string]int64{
		"askback.turns answer": 2, "askback.turns no_answer": 1, "askback.turns clarification": 1, "askback.turns failed": 1, "askback.turns stopped": 1,
		"askback.turn.duration answer": 2, "askback.turn.duration no_answer": 1, "askback.turn.duration clarification": 1,
		"askback.stage.duration claim": 6, "askback.stage.duration fold": 1, "askback.stage.duration gate pre": 4, // one turn failed, and one left before its gate
		"askback.stage.duration retrieve": 4, "askback.stage.duration gate post": 2, "askback.stage.duration generate": 3, "askback.stage.duration commit": 4,
		"askback.gate.decisions ask pre unclear":                  1,
		"askback.gate.decisions proceed pre clear":                2,
		"askback.gate.decisions proceed post clear":               2,
		"askback.clarifier.second pre spared":                     2,
		"askback.clarifier.second pre asked":                      1,
		"askback.clarifier.second post spared":                    1,
		"askback.clarifier.second post asked":                     1,
		"askback.replies " + string(conversation.ReplyJustAnswer): 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestDocumented looks for each instrument with its labels in the package's
// documentation.
func TestDocumented(t *testing.T) {
	source, err := os.ReadFile("telemetry.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, code, _ := strings.Cut(string(source), "\npackage ")
	named := regexp.MustCompile(`"((?:askback|gen_ai)\.[a-z_.]+)"`).FindAllStringSubmatch(code, -1)
	if len(named) < 15 {
		t.Fatalf("only %d names were found in the code", len(named))
	}
	for _, m := range named {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(m[1]) + `(?:[ ,;:()]|\n|$)`).MatchString(doc) {
			t.Errorf("the documentation does not name %s", m[1])
		}
	}
}

// points are the points of all metrics by name and labels, the labels in the order of
// their keys: the value of a counter, how often a histogram was told, and the sum of
// tokens.
func points(t *testing.T, reader metric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	add := func(m metricdata.Metrics, attrs attribute.Set, n int64) {
		name := m.Name
		for _, a := range attrs.ToSlice() {
			name += " " + a.Value.AsString()
		}
		got[name] = n
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				if p.Sum < 0 {
					t.Errorf("%s: %+v", m.Name, p)
				}
				add(m, p.Attributes, int64(p.Count))
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, p.Sum)
			}
		}
	}
	return got
}

// TestSeries looks whether the number of series grows with conversations, texts or
// errors.
func TestSeries(t *testing.T) {
	reader := metric.NewManualReader()
	metrics, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	series := func(from, to int) int {
		for i := from; i < to; i++ {
			text := fmt.Sprint("text ", i)
			trace := pipeline.Trace{
				Reply:  &pipeline.ReplyTrace{Kind: conversation.ReplyJustAnswer, Pending: text, Original: text, Rule: text, Detail: text},
				Gates:  []gate.Decision{{Stage: gate.Pre, Ask: true, Reason: gate.ReasonUnclear, Score: float64(i), Clarifier: text, Error: text}},
				Stages: []pipeline.StageTime{{Name: "gate pre", Usage: conversation.Usage{Input: i + 1, Output: i + 1}, Err: errors.New(text)}},
				Notes:  []string{text}, Queries: []string{text}, Context: text,
			}
			turn := pipeline.Turn{Conversation: text, Number: i, Text: text, Question: text, Trace: trace}
			metrics.Observe(t.Context(), pipeline.Outcome{Result: &pipeline.Clarification{Turn: turn, ID: text, Gate: gate.Pre}, Elapsed: 1, Trace: trace})
			metrics.Observe(t.Context(), pipeline.Outcome{Err: errors.New(text), Elapsed: 1, Trace: trace})
		}
		return len(points(t, reader))
	}
	if one, many := series(0, 1), series(1, 300); one != 8 || many != one {
		t.Errorf("%d series of one turn of each kind, %d of 300; want 8 of both", one, many)
	}
}
