package main

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/askback/askback/generation"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
	"github.com/askback/askback/server"
)

// searches counts the calls, and fails with err if it is set.
type searches struct {
	searched
	calls int
	err   error
}

func (s *searches) Explain(context.Context, retrieval.Query) ([]retrieval.Hit, error) {
	s.calls++
	return nil, s.err
}

// The circuit opens after failures of the service alone, one after another; then a
// call fails at once and names it, until one that is let through after a while
// succeeds.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &searches{err: errors.New("the question is too long")}
		b := brokenSearch{newBreaker(serviceQdrant), down}
		call := func() error {
			_, err := b.Explain(t.Context(), retrieval.Query{})
			return err
		}
		for range 2 * breakAfter {
			_ = call()
		}
		down.err = context.Canceled // the client left
		for range 2 * breakAfter {
			_ = call()
		}
		if down.calls != 4*breakAfter {
			t.Fatalf("%d calls, and no failure of the service's", down.calls)
		}

		down.calls, down.err = 0, qdrant.ErrUnavailable
		for range 3 * breakAfter {
			if err := call(); blamed(err) != serviceQdrant {
				t.Fatalf("%v names %q", err, blamed(err))
			}
		}
		if down.calls != breakAfter {
			t.Errorf("it was called %d times, want %d", down.calls, breakAfter)
		}
		if err := call(); !errors.As(err, new(*server.ServiceError)) {
			t.Errorf("it says %v", err)
		}
		time.Sleep(breakFor + time.Second)
		_ = call() // fails still
		_ = call()
		if down.calls != breakAfter+1 {
			t.Errorf("it was tried %d times after a while, want once", down.calls-breakAfter)
		}
		time.Sleep(breakFor + time.Second)
		down.err = nil
		for range 3 {
			if err := call(); err != nil {
				t.Errorf("it is back, and %v", err)
			}
		}
	})
}

// writes is a generator of one piece, or an error.
type writes struct{ err error }

func (w writes) Generate(context.Context, generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		if yield(generation.Event{Delta: "a"}, nil) && !yield(generation.Event{}, w.err) {
			return
		}
	}
}

// A stream fails with its last event, and one that is not read to its end tells nothing.
func TestBreakerOfStreams(t *testing.T) {
	b := newBreaker(serviceOllama)
	read := func(w writes, all bool) (events int) {
		for range b.generator(w).Generate(t.Context(), generation.Request{}) {
			if events++; !all {
				break
			}
		}
		return events
	}
	down := writes{&server.ServiceError{Service: serviceOllama, Err: errors.New("gone")}}
	for range 2 * breakAfter {
		read(down, false)
	}
	for range breakAfter {
		if n := read(down, true); n != 2 {
			t.Fatalf("%d events", n)
		}
	}
	if n := read(down, true); n != 1 {
		t.Errorf("%d events of a circuit that is open, want the error alone", n)
	}
}
