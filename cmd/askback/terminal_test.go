package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/pipeline"
)

// hostile commands a terminal, turns the writing direction and hides letters.
const hostile = "a\x1b[2J\x1b]0;owned\x07\x1b]8;;https://evil.example\x1b\\b\u009b31m\u202ec\u2066\x00\x08\x7f\u200b\U000e0041d\r\u0085e"

// TestTerminal shows texts of documents, users and models that command a
// terminal, in every place where a turn shows one: none of it reaches the
// terminal.
func TestTerminal(t *testing.T) {
	trace := pipeline.Trace{
		Queries: []string{hostile}, Context: hostile, Notes: []string{hostile},
		Passages: []pipeline.PassageTrace{{ID: "p", Title: hostile}},
		Gates:    []gate.Decision{{Stage: gate.Pre, Error: hostile, Second: gate.SecondFailed, SecondError: hostile}},
		Reply:    &pipeline.ReplyTrace{Original: hostile},
	}
	turn := pipeline.Turn{Text: hostile, Question: hostile, Trace: trace}
	for name, r := range map[string]pipeline.Result{
		"answer":        &pipeline.Answer{Turn: turn, Citations: []generation.Citation{{N: 1, Title: hostile, Source: hostile, Quote: hostile}}},
		"clarification": &pipeline.Clarification{Turn: turn, Options: []conversation.Option{{ID: hostile, Text: hostile, Passages: []string{"p"}}}},
		"no answer":     &pipeline.NoAnswer{Turn: turn},
	} {
		var out strings.Builder
		printResult(&out, style{}, r, false)
		printTrace(&out, style{}, r.Record().Trace)
		harmless(t, name, out.String())
	}
	harmless(t, "a file's name", fileName("x"+hostile))
	harmless(t, "a fault of a file", ofFile(hostile, errors.New("reading "+hostile).Error()))
	harmless(t, "a piece of an answer", strings.Map(visible, hostile))

	var out strings.Builder
	if err := json.NewEncoder(printableJSON{&out}).Encode(hostile); err != nil {
		t.Fatal(err)
	}
	harmless(t, "JSON", out.String())
	var back string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back != hostile {
		t.Errorf("JSON reads back as %q, %v", back, err)
	}
}

func harmless(t *testing.T, where, text string) {
	t.Helper()
	if text == "" || untrusted.Visible(text) != text {
		t.Errorf("%s shows %q", where, text)
	}
}
