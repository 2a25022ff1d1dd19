// Package clarifiertest holds the suite that every clarifier passes, whatever
// it thinks of a question.
package clarifiertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/retrieval"
)

// Run holds c to the contract of gate.Clarifier: scores are probabilities,
// options rest on passages that were given, texts of any shape are taken, the
// context is honoured, and concurrent calls agree with single ones.
func Run(t *testing.T, c gate.Clarifier) {
	t.Helper()
	for name, r := range requests() {
		t.Run(name, func(t *testing.T) {
			v, err := c.Clarify(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			Check(t, r, v)
		})
	}
	t.Run("honours its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Clarify(ctx, requests()["two answers"]); err == nil {
			t.Error("no error on a cancelled context")
		}
	})
	t.Run("concurrent calls agree", func(t *testing.T) {
		r := requests()["two answers"]
		want, err := c.Clarify(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, err := c.Clarify(t.Context(), r); err != nil || got.Score != want.Score || got.Clarification != want.Clarification {
					t.Errorf("%v %q (error %v), alone %v %q", got.Score, got.Clarification, err, want.Score, want.Clarification)
				}
			})
		}
		wg.Wait()
	})
}

// Check holds one verdict to the contract.
func Check(t testing.TB, r gate.Request, v gate.Verdict) {
	t.Helper()
	if !(v.Score >= 0 && v.Score <= 1) {
		t.Errorf("score %v is no probability", v.Score)
	}
	given := map[string]bool{}
	for _, p := range r.Passages {
		given[p.ID] = true
	}
	ids := map[string]bool{}
	for _, o := range v.Options {
		if o.ID == "" || ids[o.ID] {
			t.Errorf("option id %q is empty or stands twice", o.ID)
		}
		ids[o.ID] = true
		if strings.TrimSpace(o.Text) == "" {
			t.Errorf("option %s has no text", o.ID)
		}
		if len(o.Passages) == 0 {
			t.Errorf("option %q rests on no passage", o.Text)
		}
		for _, p := range o.Passages {
			if !given[p] {
				t.Errorf("option %q rests on %q, which is not among the passages", o.Text, p)
			}
		}
	}
	for _, p := range v.RuledOut {
		if !given[p] {
			t.Errorf("ruled out %q, which is not among the passages", p)
		}
	}
	if len(r.Passages) > 0 && len(v.RuledOut) >= len(r.Passages) {
		t.Error("every passage is ruled out")
	}
	if len(v.Options) == 1 {
		t.Error("one option alone is no choice")
	}
	if len(v.Options) > 0 && v.Clarification == "" {
		t.Error("options without a clarification")
	}
	if strings.ContainsAny(v.Clarification, "\x00\x1b") {
		t.Errorf("control characters in %q", v.Clarification)
	}
}

func requests() map[string]gate.Request {
	two := []retrieval.Passage{
		{ID: "a", Title: "Refunds: bought online", Text: "Items bought online can be returned within 30 days of delivery."},
		{ID: "b", Title: "Refunds: bought in a shop", Text: "Items bought in a shop can be returned within 14 days."},
	}
	var many []retrieval.Passage
	for i := range 12 {
		many = append(many, retrieval.Passage{ID: fmt.Sprint(i), Title: fmt.Sprintf("Plan %d", i), Text: fmt.Sprintf("Plan %d costs %d euros a month.", i, 10*i+5)})
	}
	odd := []retrieval.Passage{
		{ID: "a", Text: strings.Repeat("word ", 20_000)},
		{ID: "b", Title: "\x00\xff title \x1b[31m", Text: "\xff\xfe broken \u202e text"},
		{ID: "c", Title: "", Text: ""},
		{ID: "d", Title: "返品について", Text: "オンラインで購入した商品は30日以内に返品できます。"},
	}
	ask := func(q string, ps ...retrieval.Passage) gate.Request {
		return gate.Request{Stage: gate.Post, Question: q, Passages: ps}
	}
	long := make([]conversation.Message, 40)
	for i := range long {
		long[i] = conversation.Message{Role: []conversation.Role{conversation.User, conversation.Assistant}[i%2], Text: strings.Repeat("and so on ", 50)}
	}
	return map[string]gate.Request{
		"dialogue alone":      {Stage: gate.Pre, Question: "how long does it take?"},
		"long history":        {Stage: gate.Pre, History: long, Question: "and then?"},
		"empty question":      {Stage: gate.Pre, Question: ""},
		"huge question":       {Stage: gate.Pre, Question: strings.Repeat("why ", 50_000)},
		"broken text":         {Stage: gate.Pre, Question: "\x00\xff\xfe [SEP] [CLS] <|im_start|>system"},
		"no passages":         ask("When can I return it?"),
		"one passage":         ask("When can I return it?", two[0]),
		"two answers":         ask("How long do I have to return something?", two...),
		"the same twice":      ask("How long do I have to return something?", two[0], retrieval.Passage{ID: "c", Title: two[0].Title, Text: two[0].Text}),
		"twelve passages":     ask("What does it cost?", many...),
		"odd passages":        ask("What does it cost?", odd...),
		"history and answers": {Stage: gate.Post, History: long, Question: "How long?", Passages: two},
	}
}
