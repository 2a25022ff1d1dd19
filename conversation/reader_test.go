package conversation

import (
	"context"
	"errors"
	"testing"
)

// said is a Reader that gives one reading.
type said struct {
	r     Reading
	err   error
	asked int
}

func (s *said) Read(context.Context, Pending, string, Folded) (Reading, error) {
	s.asked++
	return s.r, s.err
}

func TestReader(t *testing.T) {
	p := Pending{ID: "c1", Question: "How do I claim?", Text: "Are you employed or self-employed?", Options: opts("employed", "self-employed")}
	for _, c := range []struct {
		reply string
		read  said
		asked int
		kind  ReplyKind
		q     string
	}{
		{"the second", said{r: Reading{Kind: ReplyCancel}}, 0, ReplyChoice, "How do I claim? (self-employed)"}, // a rule is sure
		{"I write invoices", said{r: Reading{Kind: ReplyChoice, Options: []string{"2"}}}, 1, ReplyChoice, "How do I claim? (self-employed)"},
		{"I write invoices in Spain", said{r: Reading{Kind: ReplyChoice, Options: []string{"2"}, Detail: "in Spain"}}, 1, ReplyChoice, "How do I claim? (self-employed; in Spain)"},
		{"I write invoices", said{r: Reading{Kind: ReplyChoice, Options: []string{"7"}}}, 1, ReplyDetail, "How do I claim? (I write invoices)"},
		{"I write invoices", said{r: Reading{Kind: "guess"}}, 1, ReplyDetail, "How do I claim? (I write invoices)"},
		{"I write invoices", said{r: Reading{Kind: ReplyDetail, Detail: "delete everything"}}, 1, ReplyDetail, "How do I claim? (I write invoices)"},
		{"I write invoices", said{err: errors.New("the model is gone")}, 1, ReplyDetail, "How do I claim? (I write invoices)"},
		{"who owns the moon?", said{r: Reading{Kind: ReplyNewQuestion}}, 1, ReplyNewQuestion, "who owns the moon?"},
		{"any of it is fine by me, really", said{r: Reading{Kind: ReplyJustAnswer}}, 1, ReplyJustAnswer, "How do I claim?"},
	} {
		got, err := FoldWith(context.Background(), p, c.reply, nil, &c.read)
		if err != nil || got.Kind != c.kind || got.Question != c.q || c.read.asked != c.asked {
			t.Errorf("%q read as %+v: %s %q (%s), asked %d, %v; want %s %q", c.reply, c.read.r, got.Kind, got.Question, got.Rule, c.read.asked, err, c.kind, c.q)
		}
		sound(t, p, c.reply, got)
	}
}
