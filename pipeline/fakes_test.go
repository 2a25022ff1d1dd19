package pipeline_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
)

// shelf is a retriever over a few passages: those that share a word with the
// query, in their order. It can be told to fail.
type shelf struct {
	passages []retrieval.Passage
	err      error
	wait     bool // until the context ends
	stopped  chan struct{}
}

func (s *shelf) Retrieve(ctx context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	if s.wait {
		<-ctx.Done()
		close(s.stopped)
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	var out []retrieval.Passage
	for _, p := range s.passages {
		// A name in the query leaves out the passages of other names.
		if q := strings.ToLower(q.Texts[0]); strings.Contains(q, "cargo") && p.ID == "city" || strings.Contains(q, "city") && p.ID == "cargo" {
			continue
		}
		for w := range strings.FieldsSeq(strings.ToLower(strings.Join(q.Texts, " "))) {
			if strings.Contains(strings.ToLower(p.Title+" "+p.Text), strings.Trim(w, "?.,()")) {
				out = append(out, p)
				break
			}
		}
	}
	return out, nil
}

func (s *shelf) Get(_ context.Context, ids ...string) ([]retrieval.Passage, error) {
	var out []retrieval.Passage
	for _, p := range s.passages {
		for _, id := range ids {
			if p.ID == id {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func deposits() *shelf {
	return &shelf{passages: []retrieval.Passage{
		{ID: "city", Title: "Deposit: City", Text: "The deposit is 200."},
		{ID: "cargo", Title: "Deposit: Cargo", Text: "The deposit is 450."},
		{ID: "hours", Title: "Opening hours", Text: "We are open from 9 to 17."},
	}}
}

// asker asks at gate 1 about "it" and at gate 2 when both deposits are there
// and the question names neither. It fails the test on anything else that it
// is not told to expect.
type asker struct {
	mu       sync.Mutex
	requests []gate.Request
	err      error
}

func (a *asker) Clarify(_ context.Context, r gate.Request) (gate.Verdict, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	if a.err != nil {
		return gate.Verdict{}, a.err
	}
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

// quoter answers with the first passage, in two pieces; it can be told to fail
// or to stop short.
type quoter struct {
	requests []generation.Request
	err      error // after the first piece
	cut      bool
}

func (q *quoter) Generate(ctx context.Context, r generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		q.requests = append(q.requests, r)
		if len(r.Passages) == 0 {
			yield(generation.Event{Done: &generation.Answer{}}, nil)
			return
		}
		p := r.Passages[0]
		first, second := p.Text[:4], p.Text[4:]+" [1]"
		if r.Assumption != "" {
			first = "Assuming " + r.Assumption + ": " + first
		}
		if !yield(generation.Event{Delta: first}, nil) {
			return
		}
		if q.err != nil {
			yield(generation.Event{}, q.err)
			return
		}
		if q.cut {
			return
		}
		if ctx.Err() != nil {
			yield(generation.Event{}, ctx.Err())
			return
		}
		if !yield(generation.Event{Delta: second}, nil) {
			return
		}
		yield(generation.Event{Done: &generation.Answer{Text: first + second, Found: true,
			Citations: []generation.Citation{{N: 1, Passage: p.ID, Title: p.Title, Source: p.Source, Quote: p.Text}}}}, nil)
	}
}

// bench is a pipeline of fakes and its store.
type bench struct {
	*pipeline.Pipeline
	store  *conversation.Memory
	shelf  *shelf
	asker  *asker
	quoter *quoter
}

func newBench(t *testing.T, policy gate.Policy) *bench {
	t.Helper()
	b := &bench{store: conversation.NewMemory(), shelf: deposits(), asker: &asker{}, quoter: &quoter{}}
	p, err := pipeline.New(pipeline.Parts{Store: b.store, Retriever: b.shelf, Clarifier: b.asker, Generator: b.quoter, Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	b.Pipeline = p
	return b
}

// ask runs a turn and gives its record.
func (b *bench) ask(t *testing.T, text string) pipeline.Record {
	t.Helper()
	r, err := b.Ask(t.Context(), pipeline.Message{Text: text})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r.Record()
}

// quoterEach is a quoter for many turns at once.
type quoterEach struct{}

func (quoterEach) Generate(ctx context.Context, r generation.Request) iter.Seq2[generation.Event, error] {
	return (&quoter{}).Generate(ctx, r)
}
