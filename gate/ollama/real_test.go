package ollama_test

import (
	"math"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/clarifiertest"
	"github.com/askback/askback/gate/ollama"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
	"github.com/askback/askback/retrieval"
)

var bikes = gate.Request{
	Stage: gate.Post, Question: "How long does charging take?",
	History: []conversation.Message{{Role: conversation.User, Text: "hello"}, {Role: conversation.Assistant, Text: "Hello! What is it?"}},
	Passages: []retrieval.Passage{
		{ID: "a", Title: "Charging time: Cargo 2", Text: "It takes 6 hours."},
		{ID: "b", Title: "Charging time: City 2", Text: "It takes 4 hours."},
	},
}

const (
	head = `{"clarification": "`
	tail = `"}`
)

// words are what the conformance suite says over and over, as one token each.
var words = []string{strings.Repeat("word ", 50), strings.Repeat("why ", 50), strings.Repeat("and so on ", 25),
	"You are a helpful assistant", " with access to the following documents.", "Write the response to the user's input by strictly aligning with the facts in the provided documents."}

// A real server, a model that says what a test wants and how sure it is: the
// schema, the probabilities and the options are all exact.
func TestRealServer(t *testing.T) {
	s := ollamatest.Start(t)
	const question = "Do you mean the Cargo 2 or the City 2?"
	for _, tc := range []struct {
		name    string
		arch    string
		script  tinygguf.Script
		score   float64
		asks    string
		options []string
	}{
		{"clear", "granite", tinygguf.Say(head, "CLEAR", tail), 0, "", nil},
		{"asks", "llama", tinygguf.Say(head, question, tail), 1, question, []string{"Cargo 2", "City 2"}},
		{"rather-clear", "granite", tinygguf.Script{tinygguf.Start: {head: 1}, head: {"CLEAR": 0.7, question: 0.3}, "CLEAR": {tail: 1}, question: {tail: 1}}, 0.3, "", nil},
		{"rather-asks", "granite", tinygguf.Script{tinygguf.Start: {head: 1}, head: {"CLEAR": 0.2, question: 0.8}, "CLEAR": {tail: 1}, question: {tail: 1}}, 0.8, question, []string{"Cargo 2", "City 2"}},
		{"in-parts", "granite", tinygguf.Script{tinygguf.Start: {head: 1}, head: {"CLE": 0.5, "Wh": 0.5 - 1e-6}, "CLE": {"AR": 0.6, "AN?": 0.4}, "AR": {tail: 1}, "AN?": {tail: 1}, "Wh": {tail: 1}}, 0.7, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			model := s.Model(t, tc.name, tinygguf.Scripted(tinygguf.Config{Arch: tc.arch, Context: 32768, Words: words}, tc.script))
			c, err := ollama.New(ollama.Options{Host: s.URL, Model: model, HTTP: s.HTTP})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				v, err := c.Clarify(t.Context(), bikes)
				if err != nil {
					t.Fatal(err)
				}
				clarifiertest.Check(t, bikes, v)
				var options []string
				for _, o := range v.Options {
					options = append(options, o.Text)
				}
				if math.Abs(v.Score-tc.score) > 0.01 || v.Clarification != tc.asks || len(options) != len(tc.options) || v.Clarifier != "ollama "+model {
					t.Errorf("%+v; want score %v, %q, options %q", v, tc.score, tc.asks, tc.options)
				}
			}
			if tc.name == "asks" {
				clarifiertest.Run(t, c)
			}
		})
	}
}
