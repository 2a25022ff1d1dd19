package main

import (
	"io"
	"testing"
	"time"

	"github.com/askback/askback/cmd/askback/sample"
	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
)

// TestSampleQuestions asks the sample's questions and counts how the turns
// end. Asking back about a clear one is the worst error, so hardly any may be;
// the other bounds are a little under what was measured.
func TestSampleQuestions(t *testing.T) {
	questions, a := openQuestions(t)
	var clear, needless, unclear, asked, right int
	for _, q := range questions {
		if err := seed(t, a.store, q); err != nil {
			t.Fatal(err)
		}
		r, err := a.pipeline.Ask(t.Context(), pipeline.Message{Conversation: q.ID, Text: q.Question})
		if err != nil {
			t.Fatal(err)
		}
		kind := r.Record().Kind
		if kind == q.Expect {
			right++
		}
		if q.Expect == conversation.KindClarification {
			unclear++
			if kind == conversation.KindClarification {
				asked++
			} else {
				t.Logf("not asked: %s", q.Question)
			}
			continue
		}
		clear++
		if kind == conversation.KindClarification {
			needless++
			t.Logf("asked needlessly: %s\n%s", q.Question, describe(r))
		}
	}
	t.Logf("%d of %d end as expected; %d of %d unclear ones asked; %d of %d clear ones asked", right, len(questions), asked, unclear, needless, clear)
	if needless > 3 || asked < unclear*6/10 || right < len(questions)*8/10 {
		t.Error("worse than it was")
	}
}

// openQuestions gives the sample's questions and an assistant over the sample.
func openQuestions(t *testing.T) ([]sample.Question, *assistant) {
	t.Helper()
	questions, err := sample.Questions()
	if err != nil {
		t.Fatal(err)
	}
	a, err := openAssistant(t.Context(), io.Discard, setup{gates: gateFlags{MaxAsks: 2, GateTimeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return questions, a
}

// seed puts the dialogue before a question into its conversation.
func seed(t *testing.T, s conversation.Store, q sample.Question) error {
	if len(q.History) == 0 {
		return nil
	}
	claim, err := s.Begin(t.Context(), conversation.Request{Conversation: q.ID})
	if err != nil {
		return err
	}
	defer claim.Release()
	c := claim.Conversation()
	for i := 0; i+1 < len(q.History); i += 2 {
		c.Turns = append(c.Turns, conversation.Turn{Number: len(c.Turns) + 1, At: time.Now(), Kind: conversation.KindAnswer,
			Text: q.History[i].Text, Question: q.History[i].Text, Reply: q.History[i+1].Text})
	}
	return claim.Commit(t.Context(), c)
}

// TestSuggestions holds the first screen to its word: each question to try,
// asked first, ends as the screen says.
func TestSuggestions(t *testing.T) {
	questions, a := openQuestions(t)
	kinds := map[string]bool{}
	for _, q := range questions {
		if !q.Try {
			continue
		}
		r, err := a.pipeline.Ask(t.Context(), pipeline.Message{Conversation: "try " + q.ID, Text: q.Question})
		if err != nil {
			t.Fatal(err)
		}
		record := r.Record()
		if record.Kind != q.Expect || string(record.Gate) != q.Gate {
			t.Errorf("%q ends as %s %s, the screen says %s", q.Question, record.Kind, record.Gate, q.Shows())
		}
		kinds[q.Shows()] = true
	}
	if len(kinds) < 4 {
		t.Errorf("the suggestions show %v only", kinds)
	}
}
