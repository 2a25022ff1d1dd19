// Package fakes has a pipeline of few words for tests: about deposits, which
// differ by model, and opening hours.
//
//	What is the deposit?     asks back at gate 2: City or Cargo?
//	How much is it?          asks back at gate 1: What is it about?
//	When are you open?       is answered
//	Who painted the office?  is not in the sources
package fakes

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
)

// Shelf is a retriever: the passages that share a word with the query.
type Shelf struct{}

// Passages are all that there are.
var Passages = []retrieval.Passage{
	{ID: "city", Document: "rental.md", Title: "Deposit: City", Source: "rental.md#city", Text: "The deposit is 200."},
	{ID: "cargo", Document: "rental.md", Title: "Deposit: Cargo", Source: "rental.md#cargo", Text: "The deposit is 450."},
	{ID: "hours", Document: "shop.md", Title: "Opening hours", Source: "shop.md", Text: "We are open from 9 to 17."},
}

// Retrieve implements retrieval.Retriever.
func (Shelf) Retrieve(ctx context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	var out []retrieval.Passage
	first := strings.ToLower(q.Texts[0])
	for _, p := range Passages {
		if strings.Contains(first, "cargo") && p.ID == "city" || strings.Contains(first, "city") && p.ID == "cargo" {
			continue
		}
		for w := range strings.FieldsSeq(first) {
			if w = strings.Trim(w, "?.,()"); len(w) > 3 && strings.Contains(strings.ToLower(p.Title+" "+p.Text), w) {
				out = append(out, p)
				break
			}
		}
		if q.Limit > 0 && len(out) == q.Limit {
			break
		}
	}
	return out, ctx.Err()
}

// Asker is a clarifier.
type Asker struct{}

// Clarify implements gate.Clarifier.
func (Asker) Clarify(_ context.Context, r gate.Request) (gate.Verdict, error) {
	q := strings.ToLower(r.Question)
	if r.Stage == gate.Pre {
		if strings.HasPrefix(q, "how much is it") {
			return gate.Verdict{Score: 1, Clarification: "What is it about?", Unclear: []string{"it"}}, nil
		}
		return gate.Verdict{}, nil
	}
	var options []conversation.Option
	for _, p := range r.Passages {
		if name, ok := strings.CutPrefix(p.Title, "Deposit: "); ok && strings.Contains(q, "deposit") && !strings.Contains(q, "city") && !strings.Contains(q, "cargo") {
			options = append(options, conversation.Option{ID: fmt.Sprint(len(options) + 1), Text: name, Passages: []string{p.ID}})
		}
	}
	if len(options) < 2 {
		return gate.Verdict{}, nil
	}
	return gate.Verdict{Score: 1, Clarification: "City or Cargo?", Options: options}, nil
}

// Quoter is a generator that answers with the first passage, in two pieces.
type Quoter struct {
	// Between, if set, runs between the two pieces.
	Between func(ctx context.Context) error

	mu       sync.Mutex
	usage    conversation.Usage
	requests []generation.Request
}

// Use sets what is told as the usage of a model from now on.
func (q *Quoter) Use(u conversation.Usage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.usage = u
}

// Requests are those that came so far.
func (q *Quoter) Requests() []generation.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]generation.Request{}, q.requests...)
}

// Generate implements generation.Generator.
func (q *Quoter) Generate(ctx context.Context, r generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		q.mu.Lock()
		q.requests = append(q.requests, r)
		usage := q.usage
		q.mu.Unlock()
		if len(r.Passages) == 0 {
			yield(generation.Event{Done: &generation.Answer{}}, nil)
			return
		}
		conversation.AddUsage(ctx, usage)
		p := r.Passages[0]
		first, second := p.Text[:4], p.Text[4:]+" [1]"
		if r.Assumption != "" {
			first = "Assuming " + r.Assumption + ": " + first
		}
		if !yield(generation.Event{Delta: first}, nil) {
			return
		}
		if q.Between != nil {
			if err := q.Between(ctx); err != nil {
				yield(generation.Event{}, err)
				return
			}
		}
		if !yield(generation.Event{Delta: second}, nil) {
			return
		}
		yield(generation.Event{Done: &generation.Answer{Text: first + second, Found: true,
			Citations: []generation.Citation{{N: 1, Passage: p.ID, Title: p.Title, Source: p.Source, Quote: p.Text}}}}, nil)
	}
}

// Pipeline makes one of these parts.
func Pipeline(store conversation.Store, q *Quoter) (*pipeline.Pipeline, error) {
	return pipeline.New(pipeline.Parts{Store: store, Retriever: Shelf{}, Clarifier: Asker{}, Generator: q})
}
