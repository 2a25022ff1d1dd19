package main

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/postgres"
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
		time.Sleep(2 * time.Second)
		if got := retry(call()); got != 3*time.Second {
			t.Errorf("it is to be tried again in %v, and left alone for 3s", got)
		}
		time.Sleep(3*time.Second + 1)
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

// Who leaves tells nothing of the service: neither that it works, between failures, nor
// that it is back, and the next call tries it.
func TestBreakerWhenClientsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &searches{}
		b := brokenSearch{newBreaker(serviceQdrant), down}
		call := func(err error) error {
			down.err = err
			_, err = b.Explain(t.Context(), retrieval.Query{})
			return err
		}
		for range breakAfter {
			_ = call(qdrant.ErrUnavailable)
			_ = call(context.Canceled)
		}
		if down.calls != 2*breakAfter-1 {
			t.Fatalf("it was called %d times, want %d", down.calls, 2*breakAfter-1)
		}
		time.Sleep(breakFor + 1)
		for _, err := range []error{context.Canceled, context.DeadlineExceeded} {
			if got := call(err); got != err || !b.tries() {
				t.Errorf("%v instead of %v, and it is tried: %t", got, err, b.tries())
			}
		}
		if err := call(nil); err != nil || b.tries() {
			t.Errorf("it is back: %v", err)
		}
	})
}

// retry is the time after which an error says to try again.
func retry(err error) time.Duration {
	var s *server.ServiceError
	if !errors.As(err, &s) {
		return -1
	}
	return s.Retry
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
		for range (brokenGenerator{b, w}).Generate(t.Context(), generation.Request{}) {
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

// waits is a generator that gives a piece and waits before the next.
type waits struct{ let chan struct{} }

func (w waits) Generate(context.Context, generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		if yield(generation.Event{Delta: "a"}, nil) {
			<-w.let
			yield(generation.Event{Delta: "b"}, nil)
		}
	}
}

// Nobody waits for the whole of the answer that tries the service.
func TestBreakerTriesWithTheFirstPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(serviceOllama)
		for range breakAfter {
			_, _ = guarded(b, func() (int, error) { return 0, &server.ServiceError{Service: serviceOllama, Err: errors.New("gone")} })
		}
		time.Sleep(breakFor + 1)
		let := make(chan struct{})
		go func() {
			for range (brokenGenerator{b, waits{let}}).Generate(t.Context(), generation.Request{}) {
			}
		}()
		synctest.Wait()
		if _, err := guarded(b, func() (int, error) { return 0, nil }); err != nil {
			t.Errorf("while an answer is written: %v", err)
		}
		close(let)
	})
}

// shop is a store that fails with err if it is set, and whose Begin waits in line.
type shop struct {
	conversation.Store
	err   error
	calls int
	line  chan struct{}
}

func (s *shop) call() error { s.calls++; return s.err }

func (s *shop) Ping(ctx context.Context) error {
	if s.err == errPaused {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.call()
}

func (s *shop) Begin(context.Context, conversation.Request) (conversation.Claim, error) {
	if s.line != nil {
		<-s.line
	}
	return nil, s.call()
}

func (s *shop) Load(context.Context, string, int) (*conversation.Conversation, error) {
	return nil, s.call()
}
func (s *shop) Rename(context.Context, string, string) error             { return s.call() }
func (s *shop) Delete(context.Context, conversation.Filter) (int, error) { return 0, s.call() }
func (s *shop) List(context.Context, conversation.Filter) iter.Seq2[conversation.Info, error] {
	return func(yield func(conversation.Info, error) bool) { yield(conversation.Info{}, s.call()) }
}

var errPaused = errors.New("holds all its processes")

// Whatever is done with a store that is gone counts, and fails at once when its circuit
// is open; what a conversation's own state forbids says nothing of the server.
func TestBreakerOfStore(t *testing.T) {
	ctx := context.Background()
	for name, call := range map[string]func(conversation.Store) error{
		"begin": func(s conversation.Store) error {
			_, err := s.Begin(ctx, conversation.Request{})
			return err
		},
		"load":   func(s conversation.Store) error { _, err := s.Load(ctx, "a", 0); return err },
		"rename": func(s conversation.Store) error { return s.Rename(ctx, "a", "b") },
		"delete": func(s conversation.Store) error { _, err := s.Delete(ctx, conversation.Filter{}); return err },
		"list": func(s conversation.Store) (last error) {
			for _, err := range s.List(ctx, conversation.Filter{}) {
				last = err
			}
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &shop{err: conversation.ErrBusy}
				s := brokenStore{newBreaker(servicePostgres), inner}
				for range 2 * breakAfter {
					if err := call(s); !errors.Is(err, conversation.ErrBusy) {
						t.Fatalf("a conversation that is busy: %v", err)
					}
				}
				inner.calls, inner.err = 0, postgres.ErrUnavailable
				for range 3 * breakAfter {
					if err := call(s); blamed(err) != servicePostgres {
						t.Fatalf("%v names %q", err, blamed(err))
					}
				}
				if inner.calls != breakAfter || retry(call(s)) != breakFor {
					t.Errorf("%d calls, want %d; to be tried again in %v", inner.calls, breakAfter, retry(call(s)))
				}
				time.Sleep(breakFor + 1)
				inner.err = nil
				for range 3 {
					if err := call(s); err != nil {
						t.Errorf("it is back, and %v", err)
					}
				}
			})
		})
	}
}

// A turn that waits in line does not hold up the others when the server is back, and one
// that is only paused is found out in a bounded time.
func TestBreakerTriesStoreByPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &shop{err: postgres.ErrUnavailable}
		s := brokenStore{newBreaker(servicePostgres), inner}
		begin := func() error { _, err := s.Begin(t.Context(), conversation.Request{}); return err }
		for range breakAfter {
			_ = begin()
		}
		time.Sleep(breakFor + 1)
		inner.err = errPaused
		start := time.Now()
		if err := begin(); blamed(err) != servicePostgres || time.Since(start) > tryTime {
			t.Errorf("paused: %v after %v", err, time.Since(start))
		}
		time.Sleep(breakFor + 1)
		inner.err, inner.line = nil, make(chan struct{})
		done := make(chan error)
		go func() { done <- begin() }()
		synctest.Wait()
		if _, err := s.Load(t.Context(), "a", 0); err != nil {
			t.Errorf("while a turn waits in line: %v", err)
		}
		close(inner.line)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// No store is served without its kind having been thought of.
func TestWithBreaker(t *testing.T) {
	if s, err := withBreaker(conversation.NewMemory()); err != nil || s == nil {
		t.Error(err)
	}
	if s, err := withBreaker(&postgres.Store{}); err != nil || s.(brokenStore).service != servicePostgres {
		t.Error(err)
	}
	if _, err := withBreaker(&shop{}); err == nil {
		t.Error("a store that is not known is served")
	}
}
