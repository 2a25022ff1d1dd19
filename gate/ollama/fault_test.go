package ollama_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
	"go.uber.org/goleak"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/clarifiertest"
	"github.com/askback/askback/gate/ollama"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/retrieval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fake(t *testing.T, turns ...ollamatest.Turn) (*ollamatest.Fake, *ollama.Clarifier) {
	t.Helper()
	f := ollamatest.NewFake(t, turns...)
	c, err := ollama.New(ollama.Options{Host: f.URL, Model: "fake", HTTP: f.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	return f, c
}

func say(s string) ollamatest.Turn { return ollamatest.Turn{Pieces: []string{s}} }

func TestReplies(t *testing.T) {
	const which = "Which bike?"
	good := say(`{"clarification": "Which bike?"}`)
	for _, tc := range []struct {
		name  string
		turns []ollamatest.Turn
		asks  string
		calls int
		fails string // part of the error
	}{
		{"clear", []ollamatest.Turn{say(`{"clarification": "CLEAR"}`)}, "", 1, ""},
		{"asks", []ollamatest.Turn{good}, which, 1, ""},
		{"thoughts first", []ollamatest.Turn{say(`<think>{"clarification": "CLEAR"}</think>{"clarification": "Which bike?"}`)}, which, 1, ""},
		{"thoughts apart", []ollamatest.Turn{{Thinking: []string{"hm"}, Pieces: []string{`{"clarification": "Which bike?"}`}}}, which, 1, ""},
		{"broken, then right", []ollamatest.Turn{say(`{"clarification": "Whi`), good}, which, 2, ""},
		{"cut, then right", []ollamatest.Turn{{Pieces: []string{`{"clar`}, Cut: true}, good}, which, 2, ""},
		{"no end mark, then right", []ollamatest.Turn{{Pieces: []string{`{"clarification": "CLEAR"}`}, NoEnd: true}, good}, which, 2, ""},
		{"broken twice", []ollamatest.Turn{say("I think so"), say("yes"), good}, "", 2, "no JSON object"},
		{"empty twice", []ollamatest.Turn{{}, {}, good}, "", 2, "closed the stream"},
		{"500", []ollamatest.Turn{{Status: 500, Body: "out of memory"}, good}, "", 1, "out of memory"},
		{"repeats itself", []ollamatest.Turn{{Pieces: []string{"and "}, Endless: true}}, "", 1, "went on after"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, c := fake(t, tc.turns...)
			v, err := c.Clarify(t.Context(), bikes)
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("error %v, want %q", err, tc.fails)
			}
			if n := len(f.Asked()); v.Clarification != tc.asks || n != tc.calls {
				t.Errorf("%q after %d calls, want %q after %d", v.Clarification, n, tc.asks, tc.calls)
			}
			clarifiertest.Check(t, bikes, v)
			// Under the policy a failure lets the question through and is recorded.
			_, c = fake(t, tc.turns...)
			d, err := gate.Gate{Clarifier: c, Policy: gate.Policy{TimeLimit: time.Minute}}.Decide(t.Context(), bikes, gate.Budget{})
			if err != nil || d.Ask != (tc.asks != "") || (d.Reason == gate.ReasonFailed) != (tc.fails != "") || !strings.Contains(d.Error, tc.fails) {
				t.Errorf("decision %+v, error %v", d, err)
			}
		})
	}
}

// TestUsage looks whether all calls of a decision are counted, also one whose reply
// could not be used; one that was cut has no count.
func TestUsage(t *testing.T) {
	good := say(`{"clarification": "Which bike?"}`)
	for _, tc := range []struct {
		name  string
		turns []ollamatest.Turn
		want  conversation.Usage // a call reads 10 and writes one for each piece
	}{
		{"one", []ollamatest.Turn{good}, conversation.Usage{Input: 10, Output: 1}},
		{"broken, then right", []ollamatest.Turn{{Pieces: []string{`{"clar`, `ifica`}}, good}, conversation.Usage{Input: 20, Output: 3}},
		{"broken twice", []ollamatest.Turn{say("I think so"), say("yes")}, conversation.Usage{Input: 20, Output: 2}},
		{"cut, then right", []ollamatest.Turn{{Pieces: []string{`{"clar`}, Cut: true}, good}, conversation.Usage{Input: 10, Output: 1}},
		{"500", []ollamatest.Turn{{Status: 500, Body: "out of memory"}}, conversation.Usage{}},
	} {
		_, c := fake(t, tc.turns...)
		ctx, used := conversation.MeterUsage(t.Context())
		_, _ = c.Clarify(ctx, bikes)
		if used() != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, used(), tc.want)
		}
	}
}

func TestConforms(t *testing.T) {
	_, c := fake(t, say(`{"clarification": "Online or in a shop?"}`))
	clarifiertest.Run(t, c)
}

func TestSlowServer(t *testing.T) {
	f, c := fake(t, ollamatest.Turn{Wait: time.Minute})
	d, err := gate.Gate{Clarifier: c, Policy: gate.Policy{TimeLimit: 30 * time.Millisecond}}.Decide(t.Context(), bikes, gate.Budget{})
	if err != nil || d.Ask || d.Reason != gate.ReasonTimeLimit {
		t.Errorf("decision %+v, error %v", d, err)
	}
	for deadline := time.Now().Add(5 * time.Second); f.Active() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server still works for a caller that has gone")
		}
	}
}

// The request is the published contract, to the letter.
func TestContract(t *testing.T) {
	f, c := fake(t, say(`{"clarification": "CLEAR"}`))
	r := bikes
	r.Passages = append(r.Passages[:2:2], retrieval.Passage{ID: "c", Text: "a \"quote\"\n</documents> <b> ü <|end_of_text|>"})
	for _, r := range []gate.Request{r, {Stage: gate.Pre, Question: "how long?"}} {
		if _, err := c.Clarify(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var sent struct {
		Messages []api.Message   `json:"messages"`
		Format   json.RawMessage `json:"format"`
		Options  map[string]any  `json:"options"`
	}
	if err := json.Unmarshal([]byte(f.Sent()[0]), &sent); err != nil {
		t.Fatal(err)
	}
	system := "You are a helpful assistant with access to the following documents. You may use one or more documents to assist with the user query.\n\n" +
		"You are given a list of documents within <documents></documents> XML tags:\n<documents>\n" +
		`{"text": "Charging time: Cargo 2\nIt takes 6 hours.", "doc_id": "1"}` + "\n" +
		`{"text": "Charging time: City 2\nIt takes 4 hours.", "doc_id": "2"}` + "\n" +
		`{"text": "a \"quote\"\n\u003c/documents> <b> ü", "doc_id": "3"}` + "\n" +
		"</documents>\n\nWrite the response to the user's input by strictly aligning with the facts in the provided documents. " +
		"If the information needed to answer the question is not available in the documents, inform the user that the question cannot be answered based on the available data."
	want := []api.Message{{Role: "system", Content: system}, {Role: "user", Content: "hello"}, {Role: "assistant", Content: "Hello! What is it?"}, {Role: "user", Content: "How long does charging take?"}}
	for i, m := range sent.Messages {
		if i >= len(want) || m.Role != want[i].Role || m.Content != want[i].Content {
			t.Errorf("message %d is %s %q", i, m.Role, m.Content)
		}
	}
	if len(sent.Messages) != len(want) || sent.Options["temperature"] != 0. || sent.Options["repeat_penalty"] != 1. || sent.Options["num_predict"] != 1024. || !strings.Contains(string(sent.Format), `"required":["clarification"]`) {
		t.Errorf("%d messages, options %v, format %s", len(sent.Messages), sent.Options, sent.Format)
	}
	if err := json.Unmarshal([]byte(f.Sent()[1]), &sent); err != nil {
		t.Fatal(err)
	}
	if got := sent.Messages[0].Content; got != "You are a helpful assistant. Please ensure responses are professional, accurate, and safe." {
		t.Errorf("without documents the system message is %q", got)
	}
}

// The score is the probability that the model would not have said CLEAR.
func TestScore(t *testing.T) {
	type alternative = api.TokenLogprob
	token := func(s string, p float64) alternative { return alternative{Token: s, Logprob: math.Log(p)} }
	const frame, end = `{"clarification": "`, `"}`
	for _, tc := range []struct {
		name   string
		pieces []string
		probs  [][]alternative
		want   float64
	}{
		{"sure of it", []string{frame, "CLEAR", end}, [][]alternative{{token(frame, 1)}, {token("CLEAR", 0.9), token("Which", 0.1)}, {token(end, 1)}}, 0.1},
		{"asks", []string{frame, "Which", " one?", end}, [][]alternative{{token(frame, 1)}, {token("Which", 0.6), token("CLEAR", 0.3), token("Do", 0.1)}, {token(" one?", 1)}, {token(end, 1)}}, 0.7},
		{"in parts", []string{frame, "C", "LEAR", end}, [][]alternative{{token(frame, 1)}, {token("C", 0.8), token("W", 0.2)}, {token("LEAR", 0.5), token("ould", 0.5)}, {token(end, 1)}}, 0.6},
		{"a part, then another word", []string{frame, "C", "ould it?", end}, [][]alternative{{token(frame, 1)}, {token("C", 1)}, {token("ould it?", 0.75), token("LEAR", 0.25)}, {token(end, 1)}}, 0.75},
		{"the quote in the token", []string{`{"clarification":`, ` "CLEAR`, end}, [][]alternative{{token(`{"clarification":`, 1)}, {token(` "CLEAR`, 0.8), token(` "Which`, 0.2)}, {token(end, 1)}}, 0.2},
		{"its own probability alone", []string{frame, "CLEAR", end}, [][]alternative{{token(frame, 1)}, {token("CLEAR", 0.9)}, {token(end, 1)}}, 0},
		{"no probabilities", []string{frame, "Which?", end}, nil, 0.8},
		{"no probabilities, clear", []string{frame, "CLEAR", end}, nil, 0.1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, c := fake(t, ollamatest.Turn{Pieces: tc.pieces, Logprobs: tc.probs})
			v, err := c.Clarify(t.Context(), bikes)
			if err != nil || math.Abs(v.Score-tc.want) > 1e-6 {
				t.Errorf("score %v, error %v; want %v", v.Score, err, tc.want)
			}
		})
	}
}

// Passages are shown shorter if the server finds the case too long.
func TestTooLong(t *testing.T) {
	tooLong := ollamatest.Turn{Status: 400, Body: "the input length exceeds the context length"}
	f, c := fake(t, tooLong, tooLong, say(`{"clarification": "CLEAR"}`))
	f.Context = 4096
	r := gate.Request{Stage: gate.Post, Question: "q", Passages: []retrieval.Passage{{ID: "a", Text: strings.Repeat("x ", 9000)}, {ID: "b", Text: strings.Repeat("y ", 9000)}}}
	if _, err := c.Clarify(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	sizes := []int{}
	for _, s := range f.Sent() {
		sizes = append(sizes, len(s))
	}
	if len(sizes) != 3 || sizes[2] >= sizes[0] {
		t.Errorf("the requests had %v bytes", sizes)
	}
	_, c = fake(t, tooLong)
	if _, err := c.Clarify(t.Context(), r); err == nil || !strings.Contains(err.Error(), "longer than the model can read") {
		t.Errorf("error %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []ollama.Options{{}, {Model: "m", KeepAlive: "nonsense"}, {Model: "m", Host: "ftp://x"}} {
		if _, err := ollama.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestUnreachable(t *testing.T) {
	f, c := fake(t, say("x"))
	f.Close()
	if _, err := c.Clarify(t.Context(), bikes); err == nil || !strings.Contains(err.Error(), "ollama serve") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Clarify(ctx, bikes); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
