package pipeline

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
)

// Rewriter makes a question that leans on a dialogue stand alone, as a language
// model can. All calls may come at the same time.
type Rewriter interface {
	Standalone(ctx context.Context, history []conversation.Message, question string) (string, error)
}

// rewriteLimit is how long a Rewriter may take.
const rewriteLimit = 10 * time.Second

// contextual settles what a question means in its dialogue: by rules alone, or, if
// it leans on the dialogue and there is a Rewriter, by that one. What a Rewriter
// says is checked: it must keep the question's identifiers and numbers, be one
// line, and not be much longer than the dialogue can explain. It is then searched
// with first, and the rules' wordings after it.
func (t *turn) contextual(question string) (understood string, queries []string, resolved bool) {
	turns := unbroken(t.conv.Turns)
	understood, queries, resolved = standalone(turns, question)
	r := t.p.parts.Rewriter
	if r == nil || resolved || len(turns) == 0 || understood == question && !mayLean(question) {
		return understood, queries, resolved
	}
	var said string
	err := t.timed("rewrite", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, rewriteLimit)
		defer cancel()
		said, err = r.Standalone(ctx, t.gateHistory(), question)
		return err
	})
	switch said = strings.Join(strings.Fields(said), " "); {
	case err != nil:
		t.note("the question could not be rewritten: %v", err)
	case !faithful(question, said):
		t.note("a rewriting of the question was left aside: %.120q", said)
	case !strings.EqualFold(said, question):
		return said, append([]string{said}, slices.DeleteFunc(queries, func(q string) bool { return q == said })...), false
	}
	return understood, queries, resolved
}

// mayLean reports whether a question that the rules take for whole is short enough
// to lean on the dialogue all the same: "what are the symptoms?"
func mayLean(question string) bool {
	return len(wordsOf(question)) <= 12 && len(codes(question)) == 0
}

// faithful reports whether a rewriting can be of that question.
func faithful(question, said string) bool {
	if said == "" || !utf8.ValidString(said) || utf8.RuneCountInString(said) > 3*utf8.RuneCountInString(question)+300 {
		return false
	}
	low := strings.ToLower(said)
	for _, id := range retrieval.Identifiers(question) {
		if !strings.Contains(low, strings.ToLower(id)) {
			return false
		}
	}
	have := wordsOf(said)
	kept, all := 0, 0
	for _, w := range wordsOf(question) {
		if isDigits(w) && !slices.Contains(have, w) {
			return false
		}
		if conversation.IsStopWord(w) || pronoun.MatchString(w) {
			continue
		}
		all++
		if slices.ContainsFunc(have, func(h string) bool { return h == w || len(w) >= 4 && strings.HasPrefix(h, w[:4]) }) {
			kept++
		}
	}
	return 2*kept >= all // half of its words at least
}
