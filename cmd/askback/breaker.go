package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/server"
)

const (
	breakAfter = 5               // calls of a service that failed one after another, until it is left alone
	breakFor   = 5 * time.Second // for so long; then one call tries it
	tryTime    = 2 * time.Second // that the store has to show that it is back
)

// A breaker keeps turns from waiting for a service that is down: after some calls
// that failed, the next ones fail at once and name it, until one that is let through
// succeeds.
type breaker struct {
	service string
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
	until   atomic.Pointer[time.Time] // that it is left alone
}

func newBreaker(service string) *breaker {
	b := &breaker{service: service}
	b.circuit = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: service, Timeout: breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		// What is the question's fault is none of the service's, which has replied.
		IsSuccessful: func(err error) bool { return blamed(err) != service },
		// Whoever left, or had no time left, has not seen whether it replies.
		IsExcluded: func(err error) bool {
			return blamed(err) != service && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				until := time.Now().Add(breakFor)
				b.until.Store(&until)
			}
		},
	})
	return b
}

// begin asks whether the service may be called; done tells how that went.
func (b *breaker) begin() (done func(error), err error) {
	if done, err = b.circuit.Allow(); err == nil {
		return done, nil
	}
	wait, how := time.Second, "is being tried" // by another call
	if errors.Is(err, gobreaker.ErrOpenState) {
		wait, how = max(time.Second, time.Until(*b.until.Load())), "is left alone for a moment"
	}
	said := &server.ServiceError{Service: b.service, Retry: wait}
	said.Err = fmt.Errorf("it failed %d times one after another and %s; try again in %d seconds", breakAfter, how, said.RetryAfter())
	return nil, said
}

// tries reports whether a call is let through to try the service, or may be.
func (b *breaker) tries() bool { return b.circuit.State() == gobreaker.StateHalfOpen }

// guarded makes a call if the breaker lets it.
func guarded[T any](b *breaker, call func() (T, error)) (result T, err error) {
	done, err := b.begin()
	if err != nil {
		return result, err
	}
	defer func() { done(err) }() // after a panic too
	return call()
}

// stream makes a call that gives one thing after the other, if the breaker lets it. It
// fails with its last; where it tries the service, its first is enough, so that nobody
// waits for the rest.
func stream[T any](b *breaker, call iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		done, err := b.begin()
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		defer func() { done(err) }()
		tries := b.tries()
		for one, failed := range call {
			if err = failed; tries && err == nil {
				done(nil) // which closes the circuit: what is told of this call later says nothing
			}
			if !yield(one, err) {
				return
			}
		}
	}
}

// searched is what passages are found in.
type searched interface {
	retrieval.Retriever
	retrieval.Explainer
	retrieval.IdentifierStore
	Get(ctx context.Context, ids ...string) ([]retrieval.Passage, error)
}

// brokenSearch is a search with a breaker.
type brokenSearch struct {
	*breaker
	searched
}

// Retrieve implements retrieval.Retriever.
func (s brokenSearch) Retrieve(ctx context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	return guarded(s.breaker, func() ([]retrieval.Passage, error) { return s.searched.Retrieve(ctx, q) })
}

// Explain implements retrieval.Explainer.
func (s brokenSearch) Explain(ctx context.Context, q retrieval.Query) ([]retrieval.Hit, error) {
	return guarded(s.breaker, func() ([]retrieval.Hit, error) { return s.searched.Explain(ctx, q) })
}

// brokenGenerator is a generator with a breaker.
type brokenGenerator struct {
	*breaker
	generation.Generator
}

// Generate implements generation.Generator.
func (g brokenGenerator) Generate(ctx context.Context, r generation.Request) iter.Seq2[generation.Event, error] {
	return stream(g.breaker, g.Generator.Generate(ctx, r))
}

// pinged is a store on a server.
type pinged interface {
	conversation.Store
	Ping(context.Context) error
}

// brokenStore is a store of conversations with a breaker. The commit of a turn that has
// begun is always tried.
type brokenStore struct {
	*breaker
	pinged
}

// Begin implements conversation.Store. It may have to wait in line for long, so that the
// server is tried by something else.
func (s brokenStore) Begin(ctx context.Context, r conversation.Request) (conversation.Claim, error) {
	if s.tries() {
		if _, err := guarded(s.breaker, func() (struct{}, error) { return struct{}{}, s.isBack(ctx) }); err != nil {
			return nil, err
		}
	}
	return guarded(s.breaker, func() (conversation.Claim, error) { return s.pinged.Begin(ctx, r) })
}

func (s brokenStore) isBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, tryTime, &server.ServiceError{Service: s.service, Err: fmt.Errorf("no answer within %v", tryTime)})
	defer cancel()
	err := s.Ping(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Load implements conversation.Store.
func (s brokenStore) Load(ctx context.Context, id string, last int) (*conversation.Conversation, error) {
	return guarded(s.breaker, func() (*conversation.Conversation, error) { return s.pinged.Load(ctx, id, last) })
}

// Rename implements conversation.Store.
func (s brokenStore) Rename(ctx context.Context, id, title string) error {
	_, err := guarded(s.breaker, func() (struct{}, error) { return struct{}{}, s.pinged.Rename(ctx, id, title) })
	return err
}

// List implements conversation.Store.
func (s brokenStore) List(ctx context.Context, f conversation.Filter) iter.Seq2[conversation.Info, error] {
	return stream(s.breaker, s.pinged.List(ctx, f))
}

// Delete implements conversation.Store.
func (s brokenStore) Delete(ctx context.Context, f conversation.Filter) (int, error) {
	return guarded(s.breaker, func() (int, error) { return s.pinged.Delete(ctx, f) })
}
