package pipeline

import (
	"context"
	"fmt"
	"regexp"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

// understand settles what the question is: it folds a reply into the pending
// question and answers small talk. A result ends the turn.
func (t *turn) understand() (Result, error) {
	p := t.conv.Pending
	t.since = t.conv.Next()
	t.budget = gate.Budget{Asked: t.conv.Asked}
	if p == nil {
		if t.message.Choice != "" {
			return nil, ErrNoPending
		}
		if reply, ok := conversation.Smalltalk(t.text); ok {
			return t.say(t.text, reply), nil
		}
		t.question, t.history = t.text, settledHistory(t.conv.Turns)
		if t.amend(); t.question != t.text {
			return nil, nil
		}
		return nil, t.theOther()
	}
	t.pending, t.budget.InARow = p, p.Asked
	var f conversation.Folded
	err := t.timed("fold", func(ctx context.Context) (err error) {
		if t.message.Choice != "" {
			f, err = conversation.FoldChoice(*p, t.message.Choice)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNoOption, err)
			}
			if t.text == "" {
				t.text = f.Chosen[0].Text
			}
			return nil
		}
		f, err = conversation.FoldWith(ctx, *p, t.text, t.p.parts.Matcher, t.p.parts.Readers...)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.trace.Reply = replyTrace(*p, f)
	switch f.Kind {
	case conversation.ReplyExplain:
		return t.repeat(f), nil
	case conversation.ReplyUnclear:
		if p.Asked < t.p.gate.MaxInARow() {
			return t.repeat(f), nil
		}
		// Asking once more would be one time too often: what fits first is assumed.
		f.Assume, f.Chosen = true, f.Chosen[:min(1, len(f.Chosen))]
		t.note("%q fits several options or none; the clarifications in a row are spent, so that one is assumed", t.text)
	case conversation.ReplyCancel:
		t.conv.Settle(f)
		return t.say(t.text, f.Say), nil
	case conversation.ReplyNewQuestion:
		t.conv.Settle(f)
		if reply, ok := conversation.Smalltalk(t.text); ok {
			return t.say(t.text, reply), nil
		}
		t.question, t.history = t.text, settledHistory(t.conv.Turns)
		return nil, nil
	}
	t.conv.Settle(f)
	t.folded, t.question, t.since = &f, f.Question, p.Since
	t.history = settledHistory(t.conv.Before(p.Since))
	return nil, nil
}

var otherOne = regexp.MustCompile(`(?i)^[^\p{L}\p{N}]*(?:` +
	`(and |or |what about |how about )?((for|with|about|on|in|at) )?the other( one)?` +
	`|(und |oder )?(was ist mit |wie ist es mit )?((für|mit|bei|in) )?(der|die|das|den|dem) andere[nrs]?` +
	`|(et )?((pour|avec|dans) )?l['’]autre|(y )?((para|con|en) )?(el otro|la otra)` +
	`|(那)?另(外)?一[个個种種款]呢?|(और )?दूसर[ाीे]( वाल[ाीे])?|(aur )?doosr[aei]( wal[aei])?` +
	`)[^\p{L}\p{N}]*$`)

// theOther resolves "and the other one?" after a choice between two options: the
// last question again, with the other option.
func (t *turn) theOther() error {
	n := len(t.conv.Asked)
	if n == 0 || !otherOne.MatchString(t.text) {
		return nil
	}
	asked := t.conv.Asked[n-1]
	now := asked.Assumed
	if len(asked.Chosen) == 1 {
		now = asked.Chosen[0]
	}
	if len(asked.Options) != 2 || now == "" {
		return nil
	}
	other := asked.Options[0]
	if other.Text == now {
		other = asked.Options[1]
	}
	f, err := conversation.FoldChoice(asked, other.ID)
	if err != nil {
		return err
	}
	t.question = f.Question
	if last := lastQuestion(unbroken(t.conv.Turns)); last != "" && t.leansOn(asked) {
		t.question = conversation.WithOption(asked, last, now, other)
	}
	if t.question == f.Question { // its options rest on passages of this question
		t.folded, t.pending = &f, &asked
	}
	f.Question = t.question
	t.trace.Reply = replyTrace(asked, f)
	t.trace.Reply.Rule = "the other one"
	return nil
}

// repeat shows the pending clarification again with a word of explanation. An
// explanation costs nothing; asking which of two was meant costs one ask.
func (t *turn) repeat(f conversation.Folded) Result {
	p := *t.conv.Pending
	if f.Kind == conversation.ReplyUnclear {
		p.Asked++
	}
	t.conv.Pending = &p
	return &Clarification{
		Turn: Turn{Text: f.Say, Question: p.Question}, ID: p.ID, Gate: gate.Stage(p.Gate), Options: p.Options,
	}
}

// say is an answer that needs no sources: small talk, an acknowledgement.
func (t *turn) say(question, text string) Result {
	return &Answer{Turn: Turn{Text: text, Question: question}}
}

// settledHistory is the dialogue as the gates read it: what was asked, as
// understood, and what was answered. The back and forth of a clarification is
// left out, since its outcome stands in the question as understood, and so are
// turns that were broken off.
func settledHistory(turns []conversation.Turn) []conversation.Message {
	var m []conversation.Message
	for i, turn := range turns {
		if turn.Kind == conversation.KindPartial || turn.Kind == conversation.KindClarification && i+1 < len(turns) {
			continue
		}
		m = append(m,
			conversation.Message{Role: conversation.User, Text: turn.Question},
			conversation.Message{Role: conversation.Assistant, Text: turn.Reply})
	}
	return m
}
