package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxID is the longest id of a conversation, in bytes.
const maxID = 1024

// CheckID says what is wrong with the id of a conversation: it must be valid
// UTF-8 without control characters such as line breaks, from 1 to 1024 bytes long,
// and not "." or "..", which no address can name.
func CheckID(id string) error {
	if id == "" {
		return errors.New("the conversation's id is empty; give it one")
	}
	return checkName("conversation's id", id)
}

func checkName(what, s string) error {
	switch {
	case len(s) > maxID:
		return fmt.Errorf("the %s is %d bytes long; at most %d are kept", what, len(s), maxID)
	case !utf8.ValidString(s):
		return fmt.Errorf("the %s %q is not valid UTF-8", what, s)
	case s == "." || s == "..":
		return fmt.Errorf("the %s is %q, which browsers take for a folder; choose another", what, s)
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("the %s %q holds a control character, such as a line break", what, s)
	}
	return nil
}

// Check says what is wrong with a request. User and key keep to the rules of
// CheckID, and may be empty.
func (r Request) Check() error {
	return errors.Join(CheckID(r.Conversation), checkName("user", r.User), checkName("message's key", r.Key))
}

// Open is the turn of that number as it is kept while it runs.
func (r Request) Open(number int, now time.Time) Turn {
	text := valid(r.Text)
	return Turn{Number: number, At: now.UTC().Round(0), Text: text, Question: text, Key: r.Key}
}

// Settled reports whether the turn's message, sent again, is this turn. One that
// was broken off is not: the message may be answered after all.
func (t Turn) Settled() bool { return t.Key != "" && t.Kind != KindPartial }

// Abandoned is a turn that was running when its process died, as it is kept.
func (t Turn) Abandoned() Turn {
	t.Kind = KindPartial
	return t
}

// Earlier is the number of the turns before the last so many of n, as
// Request.Last counts them.
func Earlier(n, last int) int {
	switch {
	case last == 0:
		last = DefaultLast
	case last < 0:
		return 0
	}
	return max(0, n-last)
}

// Clone gives a copy that shares nothing with c.
func (c *Conversation) Clone() *Conversation {
	n := &Conversation{ID: c.ID, User: c.User, Title: c.Title, Earlier: c.Earlier, Turns: slices.Clone(c.Turns), State: c.State.clone()}
	for i, t := range n.Turns {
		n.Turns[i] = t.clone()
	}
	if c.Open != nil {
		o := c.Open.clone()
		n.Open = &o
	}
	if c.Held != nil {
		h := *c.Held
		n.Held = &h
	}
	if c.Asked != nil {
		n.Asked = make([]Pending, len(c.Asked))
		for i, p := range c.Asked {
			n.Asked[i] = p.clone()
		}
	}
	return n
}

func (t Turn) clone() Turn {
	t.Detail = slices.Clone(t.Detail)
	return t
}

func (s State) clone() State {
	if s.Pending != nil {
		p := s.Pending.clone()
		s.Pending = &p
	}
	return s
}

// clean makes the state's texts valid UTF-8.
func (s *State) clean() {
	if s.Pending != nil {
		s.Pending.clean()
	}
}

func (p Pending) clone() Pending {
	p.Options = slices.Clone(p.Options)
	for i := range p.Options {
		p.Options[i].Passages = slices.Clone(p.Options[i].Passages)
	}
	p.Unclear = slices.Clone(p.Unclear)
	p.Chosen = slices.Clone(p.Chosen)
	return p
}

// Next checks that next may follow stored, and gives the clean copy of it that
// a store writes. It is the part of Claim.Commit that all stores share.
//
// The turns of next must begin with those of stored, unchanged, and what is new
// must be numbered on from there. In what is new, invalid UTF-8 becomes U+FFFD
// (text is cleaned at this border, never refused), times become UTC, and a turn
// without a time gets now. The first new turn gets the request's key.
func Next(stored, next *Conversation, r Request, now time.Time) (*Conversation, error) {
	if next == nil {
		return nil, errors.New("committing a turn: no conversation given")
	}
	if next.ID != stored.ID {
		return nil, fmt.Errorf("committing a turn: the claim is on conversation %q, not on %q", stored.ID, next.ID)
	}
	have := len(stored.Turns)
	if len(next.Turns) < have || next.Earlier != stored.Earlier {
		return nil, fmt.Errorf("committing to conversation %q: it was read with the turns %d to %d, and %d to %d were given; stored turns are never removed",
			stored.ID, stored.Earlier+1, stored.Next()-1, next.Earlier+1, next.Next()-1)
	}
	for i, t := range stored.Turns {
		if !sameTurn(t, next.Turns[i]) {
			return nil, fmt.Errorf("committing to conversation %q: turn %d differs from the stored one; stored turns are never rewritten",
				stored.ID, t.Number)
		}
	}
	n := next.Clone()
	n.User, n.Title, n.Open = stored.User, stored.Title, nil
	for i := have; i < len(n.Turns); i++ {
		t := &n.Turns[i]
		if number := stored.Earlier + i + 1; t.Number != number {
			return nil, fmt.Errorf("committing to conversation %q: the new turn is numbered %d and must be %d", stored.ID, t.Number, number)
		}
		t.Key = ""
		if i == have {
			t.Key = r.Key
		}
		if len(t.Detail) > 0 {
			detail, err := compact(t.Detail)
			if err != nil {
				return nil, fmt.Errorf("committing turn %d of conversation %q: its detail is not JSON: %w", t.Number, stored.ID, err)
			}
			t.Detail = detail
		}
		if t.At.IsZero() {
			t.At = now
		}
		t.At = t.At.UTC().Round(0)
		t.Kind = Kind(valid(string(t.Kind)))
		t.Text, t.Question, t.Reply = valid(t.Text), valid(t.Question), valid(t.Reply)
	}
	n.State.clean()
	for i := range n.Asked {
		n.Asked[i].clean()
	}
	return n, nil
}

func sameTurn(a, b Turn) bool {
	if !a.At.Equal(b.At) {
		return false
	}
	if !bytes.Equal(a.Detail, b.Detail) {
		detail, err := compact(b.Detail)
		if err != nil || !bytes.Equal(a.Detail, detail) {
			return false
		}
	}
	return a.Number == b.Number && a.Text == b.Text && a.Question == b.Question && a.Kind == b.Kind && a.Reply == b.Reply
}

// compact gives JSON in the form in which it is kept, whichever store keeps it.
func compact(j json.RawMessage) (json.RawMessage, error) {
	if len(j) == 0 {
		return nil, nil
	}
	return json.Marshal(json.RawMessage(bytes.ToValidUTF8(j, []byte("\uFFFD"))))
}

func (p *Pending) clean() {
	for _, s := range []*string{&p.ID, &p.Gate, &p.Question, &p.Text, &p.Detail, &p.Assumed} {
		*s = valid(*s)
	}
	for _, words := range [][]string{p.Unclear, p.Chosen} {
		for i := range words {
			words[i] = valid(words[i])
		}
	}
	for i := range p.Options {
		o := &p.Options[i]
		o.ID, o.Text = valid(o.ID), valid(o.Text)
		for j := range o.Passages {
			o.Passages[j] = valid(o.Passages[j])
		}
	}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
