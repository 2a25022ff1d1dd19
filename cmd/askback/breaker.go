package main

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/askback/askback/generation"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/server"
)

const (
	breakAfter = 5               // calls of a service that failed one after another, until it is left alone
	breakFor   = 5 * time.Second // for so long; then one call tries it
)

// A breaker keeps turns from waiting for a service that is down: after some calls
// that failed, the next ones fail at once and name it, until one that is let through
// succeeds.
type breaker struct {
	service string
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
}

func newBreaker(service string) *breaker {
	return &breaker{service, gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: service, Timeout: breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		// What is the question's fault, or the client's who left, says nothing of the service.
		IsSuccessful: func(err error) bool { return blamed(err) != service },
	})}
}

// begin asks whether the service may be called; done tells how that went.
func (b *breaker) begin() (done func(error), err error) {
	if done, err = b.circuit.Allow(); err != nil {
		return nil, &server.ServiceError{Service: b.service, Err: fmt.Errorf("%s failed %d times one after another and is left alone for a moment; try again in %.0f seconds", b.service, breakAfter, breakFor.Seconds())}
	}
	return done, nil
}

// searched is what passages are found in on a server.
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

// guarded makes a call if the breaker lets it.
func guarded[T any](b *breaker, call func() (T, error)) (result T, err error) {
	done, err := b.begin()
	if err != nil {
		return result, err
	}
	defer func() { done(err) }() // after a panic too
	return call()
}

// generator gives a generator with the breaker.
func (b *breaker) generator(g generation.Generator) generation.Generator {
	return brokenGenerator{b, g}
}

type brokenGenerator struct {
	*breaker
	generation.Generator
}

// Generate implements generation.Generator.
func (g brokenGenerator) Generate(ctx context.Context, r generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		done, err := g.begin()
		if err != nil {
			yield(generation.Event{}, err)
			return
		}
		var failed error
		defer func() { done(failed) }()
		for e, err := range g.Generator.Generate(ctx, r) {
			failed = err
			if !yield(e, err) {
				return
			}
		}
	}
}
