package evaluate

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct{ name, in, fault string }{
		{"a case without marks", `{"id":"a","question":"q","pre":0,"post":null}`, ""},
		{"byte-order mark, CRLF and blank lines", "\uFEFF{\"id\":\"a\",\"question\":\"q\"}\r\n\r\n", ""},
		{"empty", "", "no cases"},
		{"all faulty lines are named", "{}\n{\"id\":\"a\"}\nnope", "line 1"},
		{"all faulty lines are named (2)", "{}\n{\"id\":\"a\"}\nnope", "line 3"},
		{"label", `{"id":"a","question":"q","pre":2}`, "want 0, 1 or null"},
		{"role", `{"id":"a","question":"q","history":[{"role":"system","text":"x"}]}`, "role"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tc.in))
			if (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

// byWord asks when the question holds "unsure"; its score is the number of words / 10.
type byWord struct{}

func (byWord) Clarify(_ context.Context, r gate.Request) (gate.Verdict, error) {
	return gate.Verdict{Score: float64(len(strings.Fields(r.Question))) / 10, Clarification: "which?"}, nil
}

func TestMeasure(t *testing.T) {
	cases, err := Read(strings.NewReader(`{"id":"1","question":"a b c d e f","pre":1,"post":1,"kind":"x"}
{"id":"2","question":"a b c","pre":1,"post":null,"kind":"x"}
{"id":"3","question":"a b c d e f g","pre":0,"post":0,"kind":"y"}
{"id":"4","question":"a b","pre":0,"post":0,"kind":"y"}`))
	if err != nil {
		t.Fatal(err)
	}
	var ps []Prediction
	for p, err := range Run(t.Context(), gate.Gate{Clarifier: byWord{}}, cases, gate.Pre, gate.Post) {
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	got := Measure(gate.Pre, .5, ps)
	want := Report{Cases: 4, Asking: 2, Accuracy: .5, Recall: .5, Precision: .5, OverAsking: .5, AUC: .5}
	if got.Cases != want.Cases || got.Asking != want.Asking || got.Accuracy != want.Accuracy || got.Recall != want.Recall ||
		got.Precision != want.Precision || got.OverAsking != want.OverAsking || math.Abs(got.AUC-want.AUC) > 1e-9 {
		t.Errorf("gate 1: %+v, want %+v", got, want)
	}
	if got := Measure(gate.Post, .5, ps); got.Cases != 3 || got.AUC != .5 {
		t.Errorf("gate 2 leaves out the case without a label: %+v", got)
	}
}

func TestMeasureOptions(t *testing.T) {
	option := func(ids ...string) conversation.Option { return conversation.Option{Text: "x", Passages: ids} }
	one, zero := 1, 0
	ps := []Prediction{
		// Two options for one reading: one of them fits, one reading is missing.
		{Gate: gate.Post, Score: .9, Asked: true, Label: &one,
			Options:  []conversation.Option{option("a"), option("b")},
			Readings: []conversation.Option{option("a", "b"), option("c")}},
		{Gate: gate.Post, Score: .9, Asked: true, Label: &one,
			Options:  []conversation.Option{option("a"), option("c")},
			Readings: []conversation.Option{option("c"), option("a")}},
		// Asked openly, wrongly, or without readings tied to passages: not judged.
		{Gate: gate.Post, Score: .9, Asked: true, Label: &one, Readings: []conversation.Option{option("a")}},
		{Gate: gate.Post, Score: .9, Asked: true, Label: &zero, Options: []conversation.Option{option("a")}},
		{Gate: gate.Post, Score: .1, Asked: true, Label: &one, Options: []conversation.Option{option("a")}, Readings: []conversation.Option{option()}},
	}
	got := Measure(gate.Post, .5, ps)
	if got.OptionCases != 2 || got.OptionPrecision != .75 || got.OptionRecall != .75 {
		t.Errorf("options: %d cases, precision %v, recall %v; want 2, 0.75, 0.75", got.OptionCases, got.OptionPrecision, got.OptionRecall)
	}
	// Four of score .9, three of them asking; one of .1 that asks.
	if want := (math.Abs(4*.9-3) + math.Abs(.1-1)) / 5; math.Abs(got.CalibrationError-want) > 1e-9 {
		t.Errorf("calibration error %v, want %v", got.CalibrationError, want)
	}
}
