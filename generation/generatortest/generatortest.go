// Package generatortest holds the suite that every generation.Generator
// passes.
package generatortest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/generation"
	"github.com/askback/askback/retrieval"
)

// Case is a request that the generator under test answers, or, if Found is
// false, says that it cannot.
type Case struct {
	Name    string
	Request generation.Request
	Found   bool
}

// Passages are what the suite's own requests are answered from.
var Passages = []retrieval.Passage{
	{ID: "p1", Document: "rental.md", Title: "Car rental > Deposit", Source: "rental.md#deposit",
		Text: "For the economy class a deposit of 300 is blocked on your credit card. It is released within five days of the return. Debit cards are not accepted for the deposit."},
	{ID: "p2", Document: "rental.md", Title: "Car rental > Opening hours", Source: "rental.md#opening-hours",
		Text: "The desk is open from 8 to 20 on weekdays. On Sunday it is closed."},
}

// Answerable is a request whose answer stands in Passages.
func Answerable() generation.Request {
	return generation.Request{Question: "How high is the deposit for the economy class?", Passages: Passages}
}

// Run holds a generator against the contract. newGenerator is called for each
// test; the generator must find the answer to Answerable.
func Run(t *testing.T, newGenerator func(t *testing.T) generation.Generator, cases ...Case) {
	cases = append(cases,
		Case{"answerable", Answerable(), true},
		Case{"no passages", generation.Request{Question: Answerable().Question}, false},
	)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			a, err := Collect(t.Context(), newGenerator(t), c.Request)
			if err != nil {
				t.Fatal(err)
			}
			if a.Found != c.Found {
				t.Errorf("found = %v, want %v; the answer: %q", a.Found, c.Found, a.Text)
			}
			if err := Check(c.Request, a); err != nil {
				t.Errorf("%v in %+v", err, a)
			}
		})
	}
	t.Run("cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Collect(ctx, newGenerator(t), Answerable()); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want context.Canceled", err)
		}
	})
	t.Run("cancelled in the middle", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for e, err := range newGenerator(t).Generate(ctx, Answerable()) {
			if e.Done != nil {
				return // written whole before it was cancelled
			}
			last = err
			cancel()
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("the stream ended without Done and with error %v, want context.Canceled", last)
		}
	})
	t.Run("reader leaves", func(t *testing.T) {
		for range newGenerator(t).Generate(t.Context(), Answerable()) {
			break
		}
	})
}

// Collect reads a stream to its end and holds it against the contract of
// Generator: the pieces joined are the text, Done comes once and last, and
// nothing is sent for an answer that was not found.
func Collect(ctx context.Context, g generation.Generator, r generation.Request) (*generation.Answer, error) {
	var text strings.Builder
	var done *generation.Answer
	for e, err := range g.Generate(ctx, r) {
		switch {
		case done != nil:
			return nil, fmt.Errorf("an event after Done: %+v, %v", e, err)
		case err != nil:
			return nil, err
		case e.Done != nil && e.Delta != "":
			return nil, fmt.Errorf("the event with Done carries text too: %q", e.Delta)
		case e.Done == nil && e.Delta == "":
			return nil, errors.New("an empty event")
		}
		text.WriteString(e.Delta)
		done = e.Done
	}
	switch {
	case done == nil:
		return nil, errors.New("the stream ended without Done and without an error")
	case text.String() != done.Text:
		return nil, fmt.Errorf("the pieces give %q, the answer is %q", text.String(), done.Text)
	}
	return done, nil
}

var mark = regexp.MustCompile(`\[(\d+)\]`)

// Check holds an answer against its request: each mark has its citation and
// each citation its mark, numbered from 1 in order of appearance, and each
// quotes the words of a passage that was given.
func Check(r generation.Request, a *generation.Answer) error {
	if !a.Found {
		if a.Text != "" || len(a.Citations) > 0 {
			return errors.New("not found, but there is text or a citation")
		}
		return nil
	}
	if strings.TrimSpace(a.Text) == "" {
		return errors.New("found, but there is no text")
	}
	if !utf8.ValidString(a.Text) || strings.ContainsFunc(a.Text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return fmt.Errorf("the text holds control characters or broken UTF-8: %q", a.Text)
	}
	marks := 0
	for _, m := range mark.FindAllStringSubmatch(a.Text, -1) {
		if m[1] == fmt.Sprint(marks+1) {
			marks++
		}
	}
	if marks != len(a.Citations) || marks == 0 {
		return fmt.Errorf("%d marks in order from [1], %d citations", marks, len(a.Citations))
	}
	passages := map[string]retrieval.Passage{}
	for _, p := range r.Passages {
		passages[p.ID] = p
	}
	for i, c := range a.Citations {
		p, ok := passages[c.Passage]
		switch {
		case c.N != i+1:
			return fmt.Errorf("citation %d is numbered %d", i+1, c.N)
		case !ok:
			return fmt.Errorf("citation %d names passage %q, which was not given", c.N, c.Passage)
		case c.Title != p.Title || c.Source != p.Source:
			return fmt.Errorf("citation %d has title %q and source %q, not the passage's %q and %q", c.N, c.Title, c.Source, p.Title, p.Source)
		case c.Quote == "" || !strings.Contains(p.Text, c.Quote):
			return fmt.Errorf("citation %d quotes %q, which does not stand in passage %q", c.N, c.Quote, p.ID)
		}
	}
	return nil
}
