package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTurns replays short conversations: each line is what the user writes and
// how the turn must end.
func TestTurns(t *testing.T) {
	for _, tc := range []struct {
		name  string
		turns [][3]string // text, kind and gate, part of the text
	}{
		{"a clear question", [][3]string{{"When are you open?", "answer", "9 to 17"}}},
		{"gate 1 asks, the reply is folded in", [][3]string{
			{"How much is it?", "clarification pre", "What is it about?"},
			{"the Cargo deposit", "answer", "450"}}},
		{"gate 2 asks, the choice is kept to", [][3]string{
			{"What is the deposit?", "clarification post", "City or Cargo?"},
			{"the second one", "answer", "450"}}},
		{"both gates, one after the other", [][3]string{
			{"How much is it?", "clarification pre", "about"},
			{"the deposit", "clarification post", "City or Cargo?"},
			{"City", "answer", "200"}}},
		{"just answer states the assumption", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"just answer", "answer", "Assuming City: The deposit is 200."}}},
		{"a new question drops the pending one", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"When are you open on weekdays?", "answer", "9 to 17"},
			{"the second one", "answer", ""}}},
		{"cancelled", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"never mind", "answer", ""}}},
		{"an explanation keeps it pending", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"what do you mean by Cargo?", "clarification post", "Cargo"},
			{"Cargo", "answer", "450"}}},
		{"what was chosen once is not asked again", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"Cargo", "answer", "450"},
			{"What was the deposit again?", "answer", "450"}}},
		{"the same is not asked twice", [][3]string{
			{"What is the deposit?", "clarification post", ""},
			{"When are you open?", "answer", "9 to 17"},
			{"What is the deposit?", "answer", "200"}}},
		{"not in the sources", [][3]string{{"zzz qqq xxx yyy?", "no_answer", "could not find"}}},
		{"small talk", [][3]string{{"Hello!", "answer", ""}, {"thanks", "answer", ""}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, gate.Policy{})
			for _, turn := range tc.turns {
				r := b.ask(t, turn[0])
				if got := strings.TrimSpace(fmt.Sprint(r.Kind, " ", r.Gate)); got != turn[1] || !strings.Contains(r.Text, turn[2]) {
					t.Fatalf("%q: got %s %q, want %s %q\ntrace %+v", turn[0], got, r.Text, turn[1], turn[2], r.Trace)
				}
			}
		})
	}
}

func TestOriginalQuestionIsNeverLost(t *testing.T) {
	b := newBench(t, gate.Policy{})
	b.ask(t, "What is the deposit?")
	r := b.ask(t, "the second one")
	for _, word := range []string{"deposit", "Cargo"} {
		if !strings.Contains(r.Question, word) {
			t.Errorf("the question as understood, %q, lacks %q", r.Question, word)
		}
	}
	if got := b.quoter.requests[0].Question; got != r.Question {
		t.Errorf("the generator got %q, the user is told %q", got, r.Question)
	}
	if r.Trace.Reply == nil || r.Trace.Reply.Original != "What is the deposit?" || r.Trace.Reply.Kind != conversation.ReplyChoice {
		t.Errorf("the trace does not tell the fold: %+v", r.Trace.Reply)
	}
}

func TestGatesReadTheSettledDialogue(t *testing.T) {
	b := newBench(t, gate.Policy{})
	b.ask(t, "What is the deposit?")
	b.ask(t, "Cargo")
	b.ask(t, "When are you open?")
	last := b.asker.requests[len(b.asker.requests)-1]
	if len(last.History) != 2 || !strings.Contains(last.History[0].Text, "Cargo") || !strings.Contains(last.History[0].Text, "deposit") {
		t.Errorf("the gate reads %q; want the question as understood and its answer, without the back and forth", last.History)
	}
}

func TestAtMostTwoInARow(t *testing.T) {
	b := newBench(t, gate.Policy{MaxInARow: 1})
	if r := b.ask(t, "How much is it?"); r.Kind != conversation.KindClarification {
		t.Fatal(r)
	}
	r := b.ask(t, "the deposit")
	if r.Kind != conversation.KindAnswer {
		t.Errorf("asked again: %q", r.Text)
	}
	d := r.Trace.Gates[len(r.Trace.Gates)-1]
	if d.Reason != gate.ReasonBudget {
		t.Errorf("reason %q, want %q", d.Reason, gate.ReasonBudget)
	}
}

func TestClick(t *testing.T) {
	b := newBench(t, gate.Policy{})
	click := func(id string) (pipeline.Result, error) {
		return b.Ask(t.Context(), pipeline.Message{Choice: id})
	}
	if _, err := click("1"); !errors.Is(err, pipeline.ErrNoPending) {
		t.Errorf("a click on nothing: %v, want ErrNoPending", err)
	}
	b.ask(t, "What is the deposit?")
	if _, err := click("9"); !errors.Is(err, pipeline.ErrNoOption) {
		t.Errorf("a click on an option that is not there: %v, want ErrNoOption", err)
	}
	r, err := click("2")
	if err != nil || !strings.Contains(r.Record().Text, "450") {
		t.Errorf("%v, %v; want the Cargo's deposit", r, err)
	}
	if _, err := click("1"); !errors.Is(err, pipeline.ErrNoPending) {
		t.Errorf("a late click: %v, want ErrNoPending", err)
	}
}

// TestFaultsLeaveTheConversation tries each part's failure in the middle of a
// conversation with a pending clarification: nothing may change.
func TestFaultsLeaveTheConversation(t *testing.T) {
	broken := errors.New("the disk is full")
	for _, tc := range []struct {
		name   string
		break_ func(*bench)
		want   error
		text   string
	}{
		{"retriever", func(b *bench) { b.shelf.err = broken }, broken, "Cargo"},
		{"generator", func(b *bench) { b.quoter.err = broken }, broken, "Cargo"},
		{"generator cut short", func(b *bench) { b.quoter.cut = true }, nil, "Cargo"},
		{"empty message", func(*bench) {}, pipeline.ErrEmpty, " \n"},
		{"only broken bytes", func(*bench) {}, pipeline.ErrEmpty, "\xff\x00\xfe"},
		{"a megabyte", func(*bench) {}, pipeline.ErrTooLong, strings.Repeat("why ", 1<<18)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, gate.Policy{})
			b.ask(t, "What is the deposit?")
			before, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
			tc.break_(b)
			_, err := b.Ask(t.Context(), pipeline.Message{Text: tc.text})
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			unchanged(t, b, before)
			b.shelf.err, b.quoter.err, b.quoter.cut = nil, nil, false
			if r := b.ask(t, "Cargo"); !strings.Contains(r.Text, "450") {
				t.Errorf("afterwards the reply gives %q", r.Text)
			}
		})
	}
}

func TestCancelledTurnLeavesTheConversation(t *testing.T) {
	b := newBench(t, gate.Policy{})
	b.ask(t, "What is the deposit?")
	before, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range b.Stream(ctx, pipeline.Message{Text: "Cargo"}) {
		if _, ok := e.(pipeline.Delta); ok {
			cancel()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		if _, ok := e.(pipeline.Finished); ok {
			t.Error("a cancelled turn finished")
		}
	}
	for range b.Stream(t.Context(), pipeline.Message{Text: "Cargo"}) {
		break // the reader leaves at the first event
	}
	unchanged(t, b, before)
}

// unchanged holds the conversation against what it was, but for turns that were
// broken off.
func unchanged(t *testing.T, b *bench, before *conversation.Conversation) {
	t.Helper()
	after, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
	after.Turns = slices.DeleteFunc(after.Turns, func(t conversation.Turn) bool { return t.Kind == conversation.KindPartial })
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the conversation changed:\n%+v\n%+v", before, after)
	}
}

func TestAFailingClarifierLetsTheQuestionThrough(t *testing.T) {
	b := newBench(t, gate.Policy{})
	b.asker.err = errors.New("no weights")
	r := b.ask(t, "What is the deposit?")
	if r.Kind != conversation.KindAnswer {
		t.Fatalf("%s %q", r.Kind, r.Text)
	}
	for _, d := range r.Trace.Gates {
		if d.Reason != gate.ReasonFailed || d.Error == "" {
			t.Errorf("gate %s: %q %q; want the failure in the trace", d.Stage, d.Reason, d.Error)
		}
	}
}

func TestGate1CancelsRetrieval(t *testing.T) {
	b := newBench(t, gate.Policy{})
	b.shelf.wait, b.shelf.stopped = true, make(chan struct{})
	if r := b.ask(t, "How much is it?"); r.Kind != conversation.KindClarification {
		t.Fatal(r)
	}
	<-b.shelf.stopped
}

func TestStream(t *testing.T) {
	b := newBench(t, gate.Policy{})
	var order []string
	var text string
	var result pipeline.Result
	for e, err := range b.Stream(t.Context(), pipeline.Message{Text: "When are you open?"}) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, strings.TrimPrefix(fmt.Sprintf("%T", e), "pipeline."))
		switch e := e.(type) {
		case pipeline.Delta:
			text += e.Text
		case pipeline.Finished:
			result = e.Result
		}
	}
	slices.Sort(order[1:3]) // gate 1 and retrieval run at the same time; one passage alone needs no gate 2
	if want := []string{"Understood", "Decided", "Retrieved", "Delta", "Delta", "Finished"}; !slices.Equal(order, want) {
		t.Errorf("events %v, want %v", order, want)
	}
	a, ok := result.(*pipeline.Answer)
	if !ok || a.Text != text {
		t.Errorf("the pieces joined are %q, the answer is %+v", text, result)
	}
}

// TestOneTurnAtATime sends many turns to one conversation at once: each sees
// the ones before it and none is lost.
func TestOneTurnAtATime(t *testing.T) {
	b := newBench(t, gate.Policy{})
	p, err := pipeline.New(pipeline.Parts{Store: b.store, Retriever: b.shelf, Generator: &quoterEach{}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := p.Ask(t.Context(), pipeline.Message{Text: fmt.Sprintf("When are you open on day %d?", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c, err := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
	if err != nil || len(c.Turns) != 20 {
		t.Fatalf("%d turns (%v), want 20", len(c.Turns), err)
	}
	for i, turn := range c.Turns {
		if turn.Number != i+1 {
			t.Errorf("turn %d is numbered %d", i+1, turn.Number)
		}
	}
}

func TestRecordHasNoNullLists(t *testing.T) {
	b := newBench(t, gate.Policy{})
	for _, text := range []string{"Hello!", "zzz qqq xxx yyy?", "What is the deposit?"} {
		data, err := json.Marshal(b.ask(t, text))
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []string{"options", "citations", "queries", "passages", "gates"} {
			if strings.Contains(string(data), `"`+list+`":null`) {
				t.Errorf("%q: %s is null in %s", text, list, data)
			}
		}
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	if _, err := pipeline.New(pipeline.Parts{Generator: &quoter{}}); err == nil || !strings.Contains(err.Error(), "Retriever") {
		t.Errorf("without a retriever: %v", err)
	}
	if _, err := pipeline.New(pipeline.Parts{Retriever: deposits()}); err == nil || !strings.Contains(err.Error(), "Generator") {
		t.Errorf("without a generator: %v", err)
	}
}
