package pipeline

import (
	"slices"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

// recall finds whether the conversation has settled already what a gate would ask,
// be it by the other gate or in other words. Then the gate does not ask; the
// question is composed with what was settled, which the answer states.
func (t *turn) recall(d gate.Decision) (conversation.Recalled, bool) {
	p := conversation.Pending{Gate: string(d.Stage), Question: t.question, Text: d.Verdict.Clarification, Options: d.Verdict.Options}
	r, ok := conversation.Recall(t.ctx, t.conv.Asked, p, t.p.parts.Matcher)
	if !ok {
		return r, false
	}
	t.assumed = r.Option.Text
	if r.Waived {
		t.note("the user could not or would not choose before (%s): %q is assumed and not asked again", r.ID, r.Option.Text)
		return r, true
	}
	t.note("%q was settled earlier in the conversation (%s) and is not asked again", r.Option.Text, r.ID)
	if f, err := conversation.FoldChoice(p, r.Option.ID); err == nil {
		t.composed = f.Question
	}
	return r, true
}

// amend takes a message that changes what was settled, "actually it's the petrol
// one": from now on that counts, and the last question is answered for it.
func (t *turn) amend() {
	last := lastQuestion(unbroken(t.conv.Turns))
	i, f, ok := conversation.Amend(t.conv.Asked, t.text, last)
	if !ok {
		return
	}
	asked := t.conv.Asked[i]
	if f.Question != "" && !sameQuestion(last, asked.Question) && !t.leansOn(asked) {
		if _, again, ok := conversation.Amend(t.conv.Asked[i:i+1], t.text, asked.Question); ok {
			last, f = asked.Question, again
		}
	}
	t.trace.Reply = replyTrace(asked, f)
	t.conv.Pending = &asked
	t.conv.Settle(f)
	t.question = f.Question
	if sameQuestion(last, asked.Question) && sameQuestion(f.Question, asked.Question) { // its options rest on passages of this question
		t.folded, t.pending = &f, &asked
	}
}

// leansOn says whether the last turn was about what a clarification had settled: its
// question or its answer names that.
func (t *turn) leansOn(asked conversation.Pending) bool {
	turns := unbroken(t.conv.Turns)
	if len(turns) == 0 {
		return true
	}
	last := turns[len(turns)-1]
	said := strings.ToLower(last.Question + " " + last.Reply)
	for _, c := range append(slices.Clone(asked.Chosen), asked.Assumed) {
		if c != "" && strings.Contains(said, strings.ToLower(c)) {
			return true
		}
	}
	return false
}

// sameQuestion says whether a question, perhaps with what was learnt, is another
// one.
func sameQuestion(folded, original string) bool {
	trim := func(s string) string { return strings.TrimRight(strings.TrimSpace(strings.ToLower(s)), "?？ ") }
	return strings.HasPrefix(trim(folded), trim(original))
}

func replyTrace(p conversation.Pending, f conversation.Folded) *ReplyTrace {
	return &ReplyTrace{Pending: p.ID, Original: p.Question, Kind: f.Kind, Rule: f.Rule, Chosen: f.Chosen, Excluded: f.Excluded, Detail: f.Detail, Question: f.Question}
}
