package pipeline_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
)

// TestDoubleSubmit sends one message many times at once, as a user does who
// clicks twice: it is one turn, and everyone gets its result.
func TestDoubleSubmit(t *testing.T) {
	b := newBench(t, gate.Policy{})
	for _, m := range []pipeline.Message{
		{Text: "What is the deposit?", Key: "1"},
		{Choice: "2", Clarification: "c1", Key: "2"},
		{Text: "zzz qqq xxx?", Key: "3"},
		{Text: "thanks", Key: "4"},
	} {
		records := make([]pipeline.Record, 5)
		var wg sync.WaitGroup
		for i := range records {
			wg.Go(func() {
				r, err := b.Ask(t.Context(), m)
				if err != nil {
					t.Error(err)
					return
				}
				records[i] = r.Record()
			})
		}
		wg.Wait()
		for _, r := range records[1:] {
			r.Trace, records[0].Trace = pipeline.Trace{}, pipeline.Trace{}
			if !reflect.DeepEqual(r, records[0]) {
				t.Errorf("%+v: one got\n%+v\nand another\n%+v", m, r, records[0])
			}
		}
	}
	c, err := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
	if err != nil || len(c.Turns) != 4 || c.Turns[1].Reply != "The deposit is 450. [1]" {
		t.Errorf("%d turns, %v; want each message once: %+v", len(c.Turns), err, c.Turns)
	}
	if _, err := b.Ask(t.Context(), pipeline.Message{Text: "another", Key: "1"}); !errors.Is(err, pipeline.ErrKey) {
		t.Errorf("the key of another message: %v, want ErrKey", err)
	}
	if _, err := b.Ask(t.Context(), pipeline.Message{Choice: "1", Key: "1"}); !errors.Is(err, pipeline.ErrKey) {
		t.Errorf("a click with the key of a message: %v, want ErrKey", err)
	}
	c2 := newBench(t, gate.Policy{})
	c2.ask(t, "What is the deposit?")
	if _, err := c2.Ask(t.Context(), pipeline.Message{Choice: "1", Key: "click"}); err != nil {
		t.Fatal(err)
	}
	if r, err := c2.Ask(t.Context(), pipeline.Message{Choice: "1", Key: "click"}); err != nil || !strings.Contains(r.Record().Text, "200") {
		t.Errorf("the same click again: %v", err)
	}
	if _, err := c2.Ask(t.Context(), pipeline.Message{Choice: "2", Key: "click"}); !errors.Is(err, pipeline.ErrKey) {
		t.Errorf("another choice with its key: %v, want ErrKey", err)
	}
}

// TestSecondTab asks in a second tab while the first answer is being written:
// the second turn sees the first one.
func TestSecondTab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gate.Policy{})
		var second []string
		done := make(chan bool)
		for e, err := range b.Stream(t.Context(), pipeline.Message{Text: "When are you open?"}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.(pipeline.Understood); !ok {
				continue
			}
			go func() {
				defer close(done)
				for e, err := range b.Stream(t.Context(), pipeline.Message{Text: "and on sundays?"}) {
					if err != nil {
						t.Error(err)
					}
					if w, ok := e.(pipeline.Waiting); ok {
						second = append(second, "waiting")
						if w.Held.By != conversation.Holder() {
							t.Errorf("held %+v, want by this process", w.Held)
						}
					}
					if f, ok := e.(pipeline.Finished); ok {
						second = append(second, f.Result.Record().Question)
					}
				}
			}()
			time.Sleep(5 * time.Second) // the model thinks
		}
		<-done
		if len(second) != 2 || second[0] != "waiting" || !strings.Contains(second[1], "open") {
			t.Errorf("the second tab got %q; want to be told to wait, and the question in the first's light", second)
		}
		c, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
		if len(c.Turns) != 2 || c.Turns[0].Text != "When are you open?" || c.Turns[1].Text != "and on sundays?" {
			t.Errorf("turns %+v", c.Turns)
		}
	})
}

// releasing is a store that reads a conversation just as a turn in it ends.
type releasing struct {
	conversation.Store
	claim conversation.Claim
}

func (s releasing) Load(ctx context.Context, id string, last int) (*conversation.Conversation, error) {
	s.claim.Release()
	time.Sleep(time.Millisecond)
	return s.Store.Load(ctx, id, last)
}

// TestWaitsNoMore has the turn before end while it is looked up which it is: nobody is
// told to wait for their own.
func TestWaitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := conversation.NewMemory()
		claim, err := store.Begin(t.Context(), conversation.Request{Conversation: pipeline.DefaultConversation})
		if err != nil {
			t.Fatal(err)
		}
		p, err := pipeline.New(pipeline.Parts{Store: releasing{store, claim}, Retriever: deposits(), Clarifier: &asker{}, Generator: &quoter{}})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range p.Stream(t.Context(), pipeline.Message{Text: "When are you open?"}) {
			if w, ok := e.(pipeline.Waiting); ok || err != nil {
				t.Errorf("%+v, %v", w, err)
			}
		}
	})
}

// TestBusy says so when the turn before takes too long, and changes nothing.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gate.Policy{})
		claim, err := b.store.Begin(t.Context(), conversation.Request{Conversation: pipeline.DefaultConversation})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Ask(t.Context(), pipeline.Message{Text: "When are you open?"}); !errors.Is(err, conversation.ErrBusy) {
			t.Errorf("error %v, want ErrBusy", err)
		}
		for range b.Stream(t.Context(), pipeline.Message{Text: "When are you open?"}) {
			break // the reader leaves when told to wait
		}
		claim.Release()
		if r := b.ask(t, "When are you open?"); r.Turn != 1 {
			t.Errorf("turn %d, want 1", r.Turn)
		}
	})
}

// TestPendingAgain shows a clarification again after the program was started
// anew: by its id, with its question, options, passages and gate.
func TestPendingAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	start := func() (*pipeline.Pipeline, *sqlite.Store) {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := pipeline.New(pipeline.Parts{Store: s, Retriever: deposits(), Clarifier: &asker{}, Generator: &quoter{}})
		if err != nil {
			t.Fatal(err)
		}
		return p, s
	}
	p, s := start()
	if c, err := p.Pending(t.Context(), "a", "ada"); c != nil || err != nil {
		t.Errorf("before anything was said: %+v, %v", c, err)
	}
	r, err := p.Ask(t.Context(), pipeline.Message{Conversation: "a", User: "ada", Text: "What is the deposit?"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ask(t.Context(), pipeline.Message{Conversation: "a", User: "ada", Text: "what do you mean by Cargo?"}); err != nil {
		t.Fatal(err)
	}
	asked := r.(*pipeline.Clarification)
	s.Close()

	p, s = start()
	defer s.Close()
	c, err := p.Pending(t.Context(), "a", "ada")
	if err != nil || c == nil || c.ID != asked.ID || c.Question != "What is the deposit?" || c.Gate != gate.Post ||
		len(c.Options) != 2 || c.Options[1].Text != "Cargo" || c.Options[1].Passages[0] != "cargo" {
		t.Fatalf("after the reload: %+v, %v", c, err)
	}
	if _, err := p.Pending(t.Context(), "a", "eve"); !errors.Is(err, conversation.ErrUser) {
		t.Errorf("another user's look: %v, want ErrUser", err)
	}
	if _, err := p.Ask(t.Context(), pipeline.Message{Conversation: "a", User: "eve", Text: "Cargo"}); !errors.Is(err, conversation.ErrUser) {
		t.Errorf("another user's reply: %v, want ErrUser", err)
	}
	r, err = p.Ask(t.Context(), pipeline.Message{Conversation: "a", User: "ada", Choice: "2", Clarification: c.ID})
	if err != nil || !strings.Contains(r.Record().Text, "450") {
		t.Errorf("the click: %+v, %v", r, err)
	}
	if c, err := p.Pending(t.Context(), "a", "ada"); c != nil || err != nil {
		t.Errorf("after the reply: %+v, %v", c, err)
	}
}

// TestLateClick clicks on clarifications that wait no more; another one may be
// waiting by then.
func TestLateClick(t *testing.T) {
	b := newBench(t, gate.Policy{})
	late := func(m pipeline.Message, says string) {
		t.Helper()
		before, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
		if _, err := b.Ask(t.Context(), m); !errors.Is(err, pipeline.ErrSettled) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want ErrSettled that says %q", m, err, says)
		}
		after, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%+v changed the conversation", m)
		}
	}
	b.ask(t, "What is the deposit?")
	b.ask(t, "Cargo")
	late(pipeline.Message{Choice: "1", Clarification: "c1"}, `answered with "Cargo"`)
	late(pipeline.Message{Text: "City", Clarification: "c1"}, `answered with "Cargo"`)
	if r := b.ask(t, "How much is it?"); r.Clarification != "c3" {
		t.Fatalf("%+v", r)
	}
	late(pipeline.Message{Choice: "1", Clarification: "c1"}, `answered with "Cargo"`)
	b.ask(t, "never mind")
	late(pipeline.Message{Text: "the deposit", Clarification: "c3"}, "answered or dropped")
}

// TestClarificationExpires lets a clarification wait for longer than the policy
// says.
func TestClarificationExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gate.Policy{Expire: time.Hour})
		b.ask(t, "What is the deposit?")
		time.Sleep(59 * time.Minute)
		if c, err := b.Pending(t.Context(), "", ""); c == nil || err != nil {
			t.Errorf("in time: %+v, %v", c, err)
		}
		time.Sleep(2 * time.Minute)
		if c, err := b.Pending(t.Context(), "", ""); c != nil || err != nil {
			t.Errorf("too late: %+v, %v", c, err)
		}
		if _, err := b.Ask(t.Context(), pipeline.Message{Choice: "2"}); !errors.Is(err, pipeline.ErrSettled) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("a click: %v, want ErrSettled that says it expired", err)
		}
		r := b.ask(t, "When are you open?")
		if r.Trace.Reply != nil || len(r.Trace.Notes) != 1 || !strings.Contains(r.Trace.Notes[0], "c1") {
			t.Errorf("a message: %+v", r.Trace)
		}
		c, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
		if c.Pending != nil {
			t.Errorf("it still waits: %+v", c.Pending)
		}
	})
}

// TestBrokenOff stops turns at each event of an answer to a clarification. What
// was shown is kept, the clarification still waits, and the message can be sent
// again under its key.
func TestBrokenOff(t *testing.T) {
	for events := range 4 {
		for _, way := range []string{"the reader leaves", "the context ends"} {
			b := newBench(t, gate.Policy{})
			b.ask(t, "What is the deposit?")
			before, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
			ctx, cancel := context.WithCancel(t.Context())
			message := pipeline.Message{Text: "Cargo", Key: "k"}
			shown, n, finished := "", 0, false
			for e, err := range b.Stream(ctx, message) {
				if err != nil {
					break
				}
				if d, ok := e.(pipeline.Delta); ok {
					shown += d.Text
				}
				_, finished = e.(pipeline.Finished)
				if n++; n > events {
					if cancel(); way == "the reader leaves" {
						break
					}
				}
			}
			cancel()
			after, _ := b.store.Load(t.Context(), pipeline.DefaultConversation, conversation.All)
			switch {
			case finished:
				t.Fatalf("%s after %d events: it finished", way, n)
			case shown == "" && !reflect.DeepEqual(before, after):
				t.Errorf("%s after %d events: nothing was shown, and the conversation changed to %+v", way, n, after)
			case shown != "":
				last := after.Turns[len(after.Turns)-1]
				if last.Kind != conversation.KindPartial || last.Reply != shown || last.Text != "Cargo" || len(after.Turns) != 2 {
					t.Errorf("%s after %d events: shown %q, kept %+v", way, n, shown, last)
				}
				if !reflect.DeepEqual(before.State, after.State) || !reflect.DeepEqual(before.Asked, after.Asked) {
					t.Errorf("%s after %d events: the clarification changed", way, n)
				}
			}
			r, err := b.Ask(t.Context(), message)
			if err != nil || !strings.Contains(r.Record().Text, "450") {
				t.Errorf("%s after %d events: sent again it gives %+v, %v", way, n, r, err)
			}
		}
	}
}
