package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

// Policy is the policy that the gates follow.
func (p *Pipeline) Policy() gate.Policy { return p.parts.Policy }

// Replay runs the turn of that number again, on the conversation as it was before,
// and gives what it would have been with another policy. Nothing is stored. c is
// the conversation with that turn and those before it; what the user has changed
// since of what was settled then counts as changed.
func (p *Pipeline) Replay(ctx context.Context, c *conversation.Conversation, number int, policy gate.Policy) (Result, error) {
	i := number - 1 - c.Earlier
	if i < 0 || i >= len(c.Turns) {
		return nil, fmt.Errorf("conversation %q: turn %d is not among those given, %d to %d", c.ID, number, c.Earlier+1, c.Next()-1)
	}
	parts := p.parts
	parts.Policy = policy
	parts.Policy.Expire = 0 // what waited then has not waited until now
	parts.Store, parts.Observe = rehearsal{c: Before(c, number)}, nil
	again, err := New(parts)
	if err != nil {
		return nil, err
	}
	return again.Ask(ctx, Message{Conversation: c.ID, User: c.User, Text: c.Turns[i].Text})
}

// Before is a copy of the conversation as it was before the turn of that number, with
// what waited for a reply then.
func Before(c *conversation.Conversation, number int) *conversation.Conversation {
	b := c.Clone()
	b.Turns, b.Pending, b.Open = slices.Clip(b.Before(number)), nil, nil
	b.Asked = slices.DeleteFunc(b.Asked, func(p conversation.Pending) bool { return askedBy(p) >= number })
	last := unbroken(b.Turns)
	if len(last) == 0 || last[len(last)-1].Kind != conversation.KindClarification {
		return b
	}
	id := recordOf(last[len(last)-1]).Clarification
	for i := range b.Asked {
		a := &b.Asked[i]
		if a.ID != id {
			continue
		}
		a.Chosen, a.Settled, a.Detail, a.Assumed = nil, "", "", "" // not yet
		waits := *a
		for _, turn := range last {
			if r := recordOf(turn); r.Clarification == id && r.Trace.Reply != nil && r.Trace.Reply.Kind == conversation.ReplyUnclear {
				waits.Asked++
			}
		}
		b.Pending = &waits
	}
	return b
}

// askedBy is the number of the turn that asked, which is in the id that turn.ask
// gives.
func askedBy(p conversation.Pending) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(p.ID, "c"))
	return n
}

// recordOf is what the pipeline kept with a turn.
func recordOf(t conversation.Turn) (r Record) {
	_ = json.Unmarshal(t.Detail, &r) // another program's turn has no record
	return r
}

// rehearsal is a store that gives one conversation and keeps nothing.
type rehearsal struct {
	conversation.Store // nil: no more is asked of it in a turn
	c                  *conversation.Conversation
}

func (r rehearsal) Begin(context.Context, conversation.Request) (conversation.Claim, error) {
	return r, nil
}
func (r rehearsal) Conversation() *conversation.Conversation { return r.c }
func (r rehearsal) Release()                                 {}
func (r rehearsal) Commit(context.Context, *conversation.Conversation) error {
	return nil
}
