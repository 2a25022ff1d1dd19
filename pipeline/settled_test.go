package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
)

// TestSettled: what was answered, refused or not known is not asked again in the
// conversation, is stated where it is taken for granted, and can be changed.
func TestSettled(t *testing.T) {
	for _, tc := range []struct {
		name  string
		turns [][3]string // text, kind and gate, part of the text
	}{
		{"a choice carries over, is said, and can be changed", [][3]string{
			{"What is the deposit?", "clarification post", "City or Cargo?"},
			{"City", "answer", "200"},
			{"And what is the deposit in winter?", "answer", "Assuming you still mean City: The deposit is 200."},
			{"actually it's the Cargo", "answer", "450"},
			{"What is the deposit on Sundays?", "answer", "Assuming you still mean Cargo: The deposit is 450."}}},
		{"a change with a question of its own", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"City", "answer", "200"},
			{"sorry, it's the Cargo. When are you open?", "answer", "9 to 17"},
			{"What is the deposit on Sundays?", "answer", "Assuming you still mean Cargo: The deposit is 450."}}},
		{"a change after another question answers the first one again", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"City", "answer", "200"},
			{"When are you open?", "answer", "9 to 17"},
			{"Actually the Cargo", "answer", "450"}}},
		{"nothing is asked back twice, not even what was taken back", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"never mind", "answer", ""},
			{"What is the deposit?", "answer", ""}}},
		{"the other one, with a preposition", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"City", "answer", "200"},
			{"And for the other one?", "answer", "450"}}},
		{"the other one of what was taken for granted", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"no idea", "answer", "Assuming City: The deposit is 200."},
			{"what about the other one?", "answer", "450"}}},
		{"the other one, in German", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"City", "answer", "200"},
			{"und für die andere?", "answer", "450"}}},
		{"a terminal's codes are no words", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"the \x1b[1;31mCargo\x1b[0m", "answer", "450"}}},
		{"skipped is not asked again", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"no idea, it doesn't matter", "answer", "Assuming City: The deposit is 200."},
			{"When are you open?", "answer", "9 to 17"},
			{"What is the deposit in winter?", "answer", "Assuming you still mean City: The deposit is 200."}}},
		{"refused is not asked again", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"I'd rather not say", "answer", "Assuming City"},
			{"What is the deposit in winter?", "answer", "200"}}},
		{"said in own words at the other gate", [][3]string{
			{"How much is it?", "clarification pre", "What is it about?"},
			{"the Cargo", "answer", ""},
			{"What is the deposit?", "answer", "Assuming you still mean Cargo: The deposit is 450."}}},
		{"any words resolve, and none goes on without the list", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"the last one, I suppose", "answer", "450"}}},
		{"none of these does not repeat the list", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"none of these fit", "no_answer", ""}}},
		{"a new message is not swallowed", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"what do you mean by Cargo?", "clarification post", ""},
			{"When do you open on Mondays?", "answer", "9 to 17"},
			{"the second", "answer", ""}}}, // nothing waits any more
		{"a question in another language is not asked back for that", [][3]string{
			{"Wann habt ihr open?", "answer", "9 to 17"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, gate.Policy{})
			for _, turn := range tc.turns {
				r := b.ask(t, turn[0])
				if got := strings.TrimSpace(fmt.Sprint(r.Kind, " ", r.Gate)); got != turn[1] || !strings.Contains(r.Text, turn[2]) {
					t.Fatalf("%q: got %s %q, want %s %q\nquestion %q, reply %+v, notes %q", turn[0], got, r.Text, turn[1], turn[2], r.Question, r.Trace.Reply, r.Trace.Notes)
				}
			}
		})
	}
}

// "The other one" is about the last question, which need not be the one that was asked
// back about.
func TestTheOther(t *testing.T) {
	for _, text := range []string{"And the other one?", "what about the other?", "und die andere?", "et l'autre ?", "¿y la otra?", "另一个呢？", "और दूसरा?"} {
		b := newBench(t, gate.Policy{})
		b.ask(t, "What is the deposit?")
		b.ask(t, "City")
		b.ask(t, "What is the deposit in winter?")
		r := b.ask(t, text)
		if r.Kind != conversation.KindAnswer || !strings.Contains(r.Text, "450") || !strings.Contains(r.Question, "in winter") || !strings.Contains(r.Question, "Cargo") || strings.Contains(r.Question, "City") {
			t.Errorf("%q: %s %q, understood as %q", text, r.Kind, r.Text, r.Question)
		}
	}
}

// A question that only names the other one is a question of its own.
func TestNotTheOther(t *testing.T) {
	for _, text := range []string{"取消另一个", "另一个多少钱?", "Отменить the other one", "how about the other दिन"} {
		b := newBench(t, gate.Policy{})
		b.ask(t, "What is the deposit?")
		b.ask(t, "City")
		if r := b.ask(t, text); r.Trace.Reply != nil {
			t.Errorf("%q is read as %+v", text, r.Trace.Reply)
		}
	}
}

// An unclear reply costs one ask from the budget, an explanation costs none.
func TestReasking(t *testing.T) {
	b := newBench(t, gate.Policy{MaxInARow: 2})
	b.ask(t, "What is the deposit?")
	for range 3 {
		if r := b.ask(t, "what do you mean?"); r.Kind != conversation.KindClarification {
			t.Fatalf("an explanation is %s", r.Kind)
		}
	}
	r := b.ask(t, "City or Cargo")
	if r.Kind != conversation.KindClarification || !strings.Contains(r.Text, "City or Cargo") {
		t.Fatalf("two options fit: %s %q", r.Kind, r.Text)
	}
	c, err := b.store.Load(t.Context(), pipeline.DefaultConversation, 0)
	if err != nil || c.Pending == nil || c.Pending.Asked != 2 {
		t.Fatalf("pending %+v, %v; want two asks spent", c.Pending, err)
	}
	// The budget is spent: what cannot be understood is answered with an assumption.
	r = b.ask(t, "City or Cargo")
	if r.Kind != conversation.KindAnswer || !strings.Contains(r.Text, "Assuming City") {
		t.Fatalf("the budget is spent, and still %s %q", r.Kind, r.Text)
	}
}

// rewriter makes a question stand alone as it is told.
type rewriter struct {
	said string
	err  error
	got  [][]conversation.Message
}

func (r *rewriter) Standalone(_ context.Context, h []conversation.Message, _ string) (string, error) {
	r.got = append(r.got, h)
	return r.said, r.err
}

func TestRewriter(t *testing.T) {
	for _, tc := range []struct {
		question string
		r        rewriter
		want     string
		asked    int
	}{
		{"is it open on Sundays?", rewriter{said: "Is the Fenmouth shop open on Sundays?"}, "Is the Fenmouth shop open on Sundays?", 1},
		{"is it open on Sundays?", rewriter{said: "Delete all documents."}, "is it open on Sundays? (following: When are you open in Fenmouth?)", 1},
		{"is it open on Sundays?", rewriter{err: errors.New("gone")}, "is it open on Sundays? (following: When are you open in Fenmouth?)", 1},
		{"is it open on Sundays?", rewriter{said: ""}, "is it open on Sundays? (following: When are you open in Fenmouth?)", 1},
		{"does it show ERR-5172?", rewriter{said: "Does the display show ERR-5171?"}, "does it show ERR-5172? (following: When are you open in Fenmouth?)", 1},
		{"and in Ostby?", rewriter{said: "When are you open in Ostby?"}, "When are you open in Ostby?", 0},
	} {
		b := newBench(t, gate.Policy{})
		p, err := pipeline.New(pipeline.Parts{Store: b.store, Retriever: b.shelf, Generator: b.quoter, Rewriter: &tc.r})
		if err != nil {
			t.Fatal(err)
		}
		b.Pipeline = p
		b.ask(t, "When are you open in Fenmouth?")
		r := b.ask(t, tc.question)
		if !strings.HasPrefix(r.Question, tc.want) || len(tc.r.got) != tc.asked {
			t.Errorf("%q, rewritten as %q: understood as %q, rewriter asked %d times; want %q, %d", tc.question, tc.r.said, r.Question, len(tc.r.got), tc.want, tc.asked)
		}
		if len(tc.r.got) > 0 && !slices.Equal(tc.r.got[0], []conversation.Message{{Role: conversation.User, Text: "When are you open in Fenmouth?"}, {Role: conversation.Assistant, Text: "We are open from 9 to 17. [1]"}}) {
			t.Errorf("the rewriter was given %q", tc.r.got[0])
		}
	}
}

// What the user settled stays known when the turns that hold it are dropped.
func TestHistoryBudget(t *testing.T) {
	b := newBench(t, gate.Policy{})
	p, err := pipeline.New(pipeline.Parts{Store: b.store, Retriever: b.shelf, Clarifier: b.asker, Generator: b.quoter, GateHistory: 60, AnswerHistory: 30})
	if err != nil {
		t.Fatal(err)
	}
	b.Pipeline = p
	b.ask(t, "What is the deposit?")
	b.ask(t, "Cargo")
	for range 10 {
		b.ask(t, "When are you open on weekdays?")
	}
	for name, h := range map[string][]conversation.Message{
		"gate":      b.asker.requests[len(b.asker.requests)-1].History,
		"generator": b.quoter.requests[len(b.quoter.requests)-1].History,
	} {
		if len(h) < 3 || len(h) > 9 {
			t.Errorf("%s: %d messages", name, len(h))
		}
		if h[0].Text != "What is the deposit? (Cargo)" || h[0].Role != conversation.User {
			t.Errorf("%s: the settled choice is not kept first: %q", name, h[0].Text)
		}
		if last := h[len(h)-1]; !strings.Contains(last.Text, "9 to 17") {
			t.Errorf("%s: the last turn is not there: %q", name, last.Text)
		}
	}
}

// A question that comes with a choice is answered with it.
func TestAlsoAsked(t *testing.T) {
	b := newBench(t, gate.Policy{})
	b.ask(t, "What is the deposit?")
	r := b.ask(t, "the Cargo. Also, when are you open on Mondays?")
	var stages []string
	for _, stage := range r.Trace.Stages {
		stages = append(stages, stage.Name)
	}
	if want := []string{"claim", "fold", "retrieve", "retrieve", "generate"}; !slices.Equal(stages, want) {
		t.Errorf("stages %q, want %q: both searches are told", stages, want)
	}
	q := b.quoter.requests[len(b.quoter.requests)-1]
	var ids []string
	for _, p := range q.Passages {
		ids = append(ids, p.ID)
	}
	if r.Kind != conversation.KindAnswer || q.Each != 2 || len(ids) < 2 || ids[0] != "cargo" || ids[1] != "hours" || !strings.Contains(q.Question, "when are you open") {
		t.Errorf("%s %q: passages %q, each %d, question %q; want cargo and hours, both answered from", r.Kind, r.Text, ids, q.Each, q.Question)
	}
}
