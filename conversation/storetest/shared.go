package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
)

// Place is where several stores share what they keep, as processes do.
type Place struct {
	Open   func(Options) conversation.Store // opens another store there
	Expire func()                           // makes all claims run out, as if their holders had stood still
}

// RunShared runs the part of the suite that stores for several processes pass.
// place gives a new place.
func RunShared(t *testing.T, place func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"claims hold for all":             testSharedClaim,
		"a dead process's claim runs out": testLease,
		"a turn that died is kept":        testAbandoned,
		"a turn that died is taken up":    testResumed,
		"a lost claim":                    testLostToAnother,
		"the release of a lost claim":     testReleaseOfALostClaim,
		"a double submit to two":          testDoubleSubmitToTwo,
		"two at once":                     testTwoAtOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

func testSharedClaim(t *testing.T, p Place) {
	a, b := p.Open(Options{}), p.Open(Options{Wait: 50 * time.Millisecond})
	claim := begin(t, a, "x")
	if _, err := b.Begin(t.Context(), conversation.Request{Conversation: "x"}); !errors.Is(err, conversation.ErrBusy) {
		t.Fatalf("claimed in both: %v", err)
	}
	// Who waits can say for whom, and until when.
	if c := load(t, b, "x"); c.Held == nil || c.Held.By != conversation.Holder() || time.Until(c.Held.Until) <= 0 || time.Until(c.Held.Until) > time.Minute {
		t.Errorf("while it is claimed: held %+v, want by %s", c.Held, conversation.Holder())
	}
	claim.Release()
	say(t, b, "x", "hello")
	if c := load(t, b, "x"); c.Held != nil {
		t.Errorf("free, and held %+v", c.Held)
	}
	if got := texts(load(t, a, "x")); got != "1 hello" {
		t.Fatal(got)
	}
}

func testLease(t *testing.T, p Place) {
	a, b := p.Open(Options{Lease: time.Second}), p.Open(Options{Wait: 2500 * time.Millisecond})
	begin(t, a, "x")
	if _, err := b.Begin(t.Context(), conversation.Request{Conversation: "x"}); !errors.Is(err, conversation.ErrBusy) {
		t.Fatalf("a claim whose holder lives ran out: %v", err)
	}
	if err := a.Close(); err != nil { // as if it had died
		t.Fatal(err)
	}
	say(t, p.Open(Options{}), "x", "hello") // or the claim did not run out
}

// died leaves a claim as a process does that dies in the middle of a turn.
func died(t *testing.T, p Place, r conversation.Request) {
	t.Helper()
	s := p.Open(Options{})
	if _, err := s.Begin(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p.Expire()
}

func testAbandoned(t *testing.T, p Place) {
	died(t, p, conversation.Request{Conversation: "x", Text: "first", Key: "k"})
	s := p.Open(Options{})
	c := load(t, s, "x")
	if len(c.Turns) != 0 || c.Open == nil || c.Open.Text != "first" || c.Open.Number != 1 || c.Held != nil {
		t.Fatalf("after the process died: %+v", c)
	}
	if l := list(t, s, conversation.Filter{}); len(l) != 1 || l[0].Running {
		t.Errorf("listed %+v", l)
	}
	say(t, s, "x", "second")
	died(t, p, conversation.Request{Conversation: "x", Text: "third"})
	say(t, s, "x", "fourth")
	c = load(t, s, "x")
	if got := texts(c); got != "1 first|2 second|3 third|4 fourth" {
		t.Fatal(got)
	}
	for i, want := range []conversation.Kind{conversation.KindPartial, conversation.KindAnswer, conversation.KindPartial, conversation.KindAnswer} {
		if c.Turns[i].Kind != want {
			t.Errorf("turn %d is %+v", i+1, c.Turns[i])
		}
	}
	// The message may be sent again after all.
	claim, err := s.Begin(t.Context(), conversation.Request{Conversation: "x", Text: "first", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
}

func testResumed(t *testing.T, p Place) {
	r := conversation.Request{Conversation: "x", Text: "first", Key: "k"}
	died(t, p, r)
	s := p.Open(Options{})
	claim, err := s.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	c := claim.Conversation()
	if c.Next() != 1 || c.Open != nil {
		t.Fatalf("taken up as %+v", c)
	}
	commit(t, claim, conversation.Turn{Number: 1, Text: r.Text, Kind: conversation.KindAnswer})
	if got := texts(load(t, s, "x")); got != "1 first" {
		t.Fatal(got)
	}
}

func testLostToAnother(t *testing.T, p Place) {
	a, b := p.Open(Options{}), p.Open(Options{})
	claim := begin(t, a, "x")
	defer claim.Release()
	p.Expire() // the holder stood still for longer than its lease
	say(t, b, "x", "b's")
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 1, Text: "a's"})
	if err := claim.Commit(t.Context(), c); !errors.Is(err, conversation.ErrLost) {
		t.Fatalf("commit of a lost claim: %v, want ErrLost", err)
	}
}

// A claim never ends another's, which a late Release could do.
func testReleaseOfALostClaim(t *testing.T, p Place) {
	a, b := p.Open(Options{}), p.Open(Options{})
	old := begin(t, a, "x")
	p.Expire()
	claim := begin(t, b, "x")
	old.Release()
	commit(t, claim, conversation.Turn{Number: 2, Text: "b's"})
}

// A user clicks twice, and the clicks reach two servers.
func testDoubleSubmitToTwo(t *testing.T, p Place) {
	r := conversation.Request{Conversation: "x", Text: "hello", Key: "k"}
	a, b := p.Open(Options{}), p.Open(Options{})
	claim, err := a.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := b.Begin(t.Context(), r)
		second <- err
	}()
	time.Sleep(30 * time.Millisecond)
	commit(t, claim, conversation.Turn{Number: 1, Text: "hello", Kind: conversation.KindAnswer, Reply: "hi"})
	var repeat *conversation.RepeatError
	if err := <-second; !errors.As(err, &repeat) || repeat.Turn.Reply != "hi" {
		t.Fatalf("the second got %v, want the first's turn", err)
	}
}

func testTwoAtOnce(t *testing.T, p Place) {
	var wg sync.WaitGroup
	for range 3 {
		s := p.Open(Options{})
		for range 5 {
			wg.Go(func() {
				if _, err := Say(t.Context(), s, "x", "hello"); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if c := load(t, p.Open(Options{}), "x"); len(c.Turns) != 15 {
		t.Errorf("%d turns, want 15", len(c.Turns))
	}
}
