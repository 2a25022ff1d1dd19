package pipeline_test

import (
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

func TestReplay(t *testing.T) {
	b := newBench(t, gate.Policy{})
	for _, text := range []string{
		"What is the deposit?",        // asked at gate 2
		"the third",                   // asked again
		"the fourth",                  // no more asks: assumed
		"What are the opening hours?", // answered
		"How much is it?",             // asked at gate 1
		"the deposit",                 // settled above
	} {
		b.ask(t, text)
	}
	load := func() *conversation.Conversation {
		c, err := b.store.Load(t.Context(), "default", conversation.All)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load()
	kinds := ""
	for _, turn := range c.Turns {
		kinds += string(turn.Kind[:1])
	}
	if kinds != "ccaaca" { // else the test shows nothing
		t.Errorf("the turns ended as %s", kinds)
	}
	for i, turn := range c.Turns {
		r, err := b.Replay(t.Context(), c, i+1, b.Policy())
		if err != nil {
			t.Fatal(err)
		}
		got := r.Record()
		if got.Turn != turn.Number || got.Kind != turn.Kind || got.Text != turn.Reply || got.Question != turn.Question {
			t.Errorf("turn %d (%q) again: %s %q about %q, was %s %q about %q", i+1, turn.Text, got.Kind, got.Text, got.Question, turn.Kind, turn.Reply, turn.Question)
		}
	}
	never := gate.Policy{PreThreshold: 1.5, PostThreshold: 1.5}
	for number, want := range map[int]conversation.Kind{1: conversation.KindAnswer, 4: conversation.KindAnswer, 5: conversation.KindAnswer} {
		r, err := b.Replay(t.Context(), c, number, never)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Record(); got.Kind != want {
			t.Errorf("turn %d without gates: %s %q", number, got.Kind, got.Text)
		}
	}
	if after := load(); len(after.Turns) != 6 || after.Turns[5].At != c.Turns[5].At {
		t.Errorf("a replay was stored: %d turns", len(after.Turns))
	}
	if _, err := b.Replay(t.Context(), c, 7, never); err == nil || !strings.Contains(err.Error(), "turn 7") {
		t.Errorf("a turn that is not there: %v", err)
	}
}
