package gate

import (
	"slices"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/retrieval"
)

// asData leaves out of a request what speaks to the assistant and not of the
// subject: a gate is to judge what is asked, and no text in it may start or stop
// a clarification. Nor does what only repeats the question answer it. A passage
// that says nothing else is left out whole. A question that says nothing else
// stays as it is.
func asData(r Request) Request {
	subject := func(text string) string { return strings.TrimSpace(untrusted.WithoutCommands(text)) }
	if q := subject(r.Question); q != "" {
		r.Question = q
	}
	r.History = slices.Clone(r.History)
	for i, m := range r.History {
		r.History[i].Text = subject(m.Text)
	}
	r.History = slices.DeleteFunc(r.History, func(m conversation.Message) bool { return m.Text == "" })
	r.Passages = slices.Clone(r.Passages)
	for i := range r.Passages {
		p := &r.Passages[i]
		p.Title = untrusted.WithoutEcho(untrusted.Heading(p.Title), r.Question)
		p.Text = untrusted.WithoutEcho(subject(p.Text), r.Question)
	}
	r.Passages = slices.DeleteFunc(r.Passages, func(p retrieval.Passage) bool { return p.Text == "" })
	return r
}
