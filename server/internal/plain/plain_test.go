package plain

import (
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
)

func TestText(t *testing.T) {
	passages := pipeline.Trace{Passages: []pipeline.PassageTrace{{ID: "a", Title: "Rental > Deposit: City"}, {ID: "b", Title: "Old — new\nprices"}}}
	for _, c := range []struct {
		name   string
		record pipeline.Record
		want   string
	}{
		{"not found", pipeline.Record{Kind: conversation.KindNoAnswer, Text: "Not there."}, "Not there."},
		{"small talk", pipeline.Record{Kind: conversation.KindAnswer, Text: "Hello!"}, "Hello!"},
		{"answer", pipeline.Record{Kind: conversation.KindAnswer, Text: "Two. [1] Three. [2] Four. [3]", Citations: []generation.Citation{
			{N: 1, Title: "A", Source: "a.md"}, {N: 2, Passage: "b#1"}, {N: 3, Title: "A", Source: "a.md"}}},
			"Two. [1] Three. [2] Four. [3]\n\nSources:\n- [1] [3] A (a.md)\n- [2] b#1"},
		{"gate 1", pipeline.Record{Kind: conversation.KindClarification, Text: "What is it about?"},
			"What is it about?\n\n" + hintOpen},
		{"gate 2", pipeline.Record{Kind: conversation.KindClarification, Text: "City or Cargo?", Trace: passages, Options: []conversation.Option{
			{ID: "1", Text: "City", Passages: []string{"a", "gone"}}, {ID: "2", Text: "Cargo", Passages: []string{"b"}}, {ID: "3", Text: "neither"}}},
			"City or Cargo?\n\n1. City — Rental > Deposit: City\n2. Cargo — Old - new prices\n3. neither\n\n" + hintOptions},
	} {
		got := Text(c.record)
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		if !strings.HasPrefix(got, c.record.Text) {
			t.Errorf("%s: it does not begin with the result's text", c.name)
		}
		asked, options, ok := Clarification("  " + strings.ReplaceAll(got, "\n", "\r\n") + "\n")
		if ok != (c.record.Kind == conversation.KindClarification) {
			t.Errorf("%s: read back as a clarification: %v", c.name, ok)
		}
		if ok && (asked != c.record.Text || len(options) != len(c.record.Options)) {
			t.Errorf("%s: read back as %q with %+v", c.name, asked, options)
		}
		for i, o := range options {
			if o.Text != c.record.Options[i].Text || o.ID != c.record.Options[i].ID {
				t.Errorf("%s: option %d read back as %+v", c.name, i+1, o)
			}
		}
	}
}

// TestNoClarification keeps what only looks like one from being taken for one.
func TestNoClarification(t *testing.T) {
	for _, text := range []string{
		"", hintOpen, hintOptions, "\n\n" + hintOpen, "1. a\n2. b\n\n" + hintOptions, "Which?\n\n" + hintOptions,
		"Which?\n\n1. a\n3. b\n\n" + hintOptions, "Which?\n\n2. a\n\n" + hintOptions, "Which?\n\n1. a\n2. b\n\n" + hintOptions + " Or so.",
	} {
		if asked, options, ok := Clarification(text); ok {
			t.Errorf("%q is taken for the clarification %q with %+v", text, asked, options)
		}
	}
}

func FuzzClarification(f *testing.F) {
	f.Add("Which?", "City", "Cargo — big")
	f.Add("What\nis it?", "1. one", "")
	f.Add("", "\n", "x")
	f.Fuzz(func(t *testing.T, text, a, b string) {
		r := pipeline.Record{Kind: conversation.KindClarification, Text: text}
		for _, o := range []string{a, b} {
			if o != "" {
				r.Options = append(r.Options, conversation.Option{Text: o})
			}
		}
		worded := Text(r)
		asked, options, ok := Clarification(worded)
		if ok && (asked == "" || len(options) > 99) {
			t.Errorf("%q gives %q, %+v", worded, asked, options)
		}
		again, more, still := Clarification(worded)
		if again != asked || still != ok || len(more) != len(options) {
			t.Error("not the same twice")
		}
	})
}
