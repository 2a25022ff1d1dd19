package openai

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server/internal/plain"
)

// exchange is a turn as a client has it: what the user wrote and what came back.
type exchange struct{ user, assistant string }

// prefix begins the ids of conversations that are found by their dialogue.
const prefix = "chat-"

// newID is for a conversation that has no dialogue yet.
func newID() string { return prefix + strings.ToLower(rand.Text()) }

// digests gives for each exchange the id of a conversation that began with all up
// to it. Each user has ids of their own.
func digests(user string, dialogue []exchange) []string {
	h := sha256.New()
	add := func(s string) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s)))) // so that no two dialogues are alike when joined
		h.Write([]byte(s))
	}
	add(user)
	ids := make([]string, len(dialogue))
	for i, e := range dialogue {
		add(tidy(e.user))
		add(tidy(e.assistant))
		ids[i] = prefix + hex.EncodeToString(h.Sum(nil)[:16])
	}
	return ids
}

// tidy is a text without what gets lost or added on its way through a client.
func tidy(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\uFEFF':
			return -1
		}
		return r
	}, s))
}

// given is what a client was given in a turn. A turn of a dialogue that came from
// a client keeps it as it is.
func given(t conversation.Turn) exchange {
	e := exchange{t.Text, t.Reply}
	if r, ok := record(t); ok && r.Text == t.Reply {
		e.assistant = plain.Text(r)
	}
	return e
}

// record reads what a pipeline kept with a turn.
func record(t conversation.Turn) (r pipeline.Record, ok bool) {
	return r, len(t.Detail) > 0 && json.Unmarshal(t.Detail, &r) == nil
}

// common is the number of a conversation's first turns that are the dialogue's.
func common(turns []conversation.Turn, dialogue []exchange) int {
	n := 0
	for n < min(len(turns), len(dialogue)) {
		e := given(turns[n])
		if tidy(e.user) != tidy(dialogue[n].user) || tidy(e.assistant) != tidy(dialogue[n].assistant) {
			break
		}
		n++
	}
	return n
}

// maxProbes bounds the look-ups for one dialogue.
const maxProbes = 256

// find gives the stored conversation that has most of the dialogue's first turns in
// common with it, and their number; nil if none has any.
func find(ctx context.Context, store conversation.Store, user string, dialogue []exchange) (best *conversation.Conversation, turns int, err error) {
	for i, id := range digests(user, dialogue[:min(len(dialogue), maxProbes)]) {
		if i < turns { // another that began here has no more in common
			continue
		}
		c, err := store.Load(ctx, id, conversation.All)
		switch {
		case errors.Is(err, conversation.ErrNotFound):
			continue
		case err != nil:
			return nil, 0, err
		case c.User != user:
			continue
		}
		if n := common(c.Turns, dialogue); n > turns {
			best, turns = c, n
		}
	}
	return best, turns, nil
}

// fork makes the conversation of that id: the first turns of from, and the exchanges
// in rest after them. Where it exists already it is left as it is.
func fork(ctx context.Context, store conversation.Store, id, user string, from *conversation.Conversation, turns int, rest []exchange) error {
	next := &conversation.Conversation{}
	switch {
	case from == nil:
	case turns < len(from.Turns):
		next = pipeline.Before(from, turns+1)
	default:
		next = from.Clone()
		next.Open = nil
	}
	next.ID = id
	for _, e := range rest {
		if err := seed(ctx, next, e); err != nil {
			return err
		}
	}
	if len(next.Turns) == 0 {
		return nil
	}
	return create(ctx, store, user, next)
}

// errExists says that there is a conversation of that id.
var errExists = errors.New("there is such a conversation already")

// create stores a conversation whole.
func create(ctx context.Context, store conversation.Store, user string, next *conversation.Conversation) error {
	claim, err := store.Begin(ctx, conversation.Request{Conversation: next.ID, User: user, Text: next.Turns[0].Text})
	if err != nil {
		return err
	}
	defer claim.Release()
	if claim.Conversation().Next() > 1 {
		return errExists
	}
	for i := range next.Turns {
		t := &next.Turns[i]
		if r, ok := record(*t); ok {
			r.Conversation, r.Turn = next.ID, t.Number
			if t.Detail, err = json.Marshal(r); err != nil {
				return fmt.Errorf("encoding turn %d: %w", t.Number, err)
			}
		}
	}
	return claim.Commit(ctx, next)
}

// seed adds a turn that the pipeline did not write. A clarification of ours waits
// for its reply again, and a reply to one is folded in, by the rules alone.
func seed(ctx context.Context, c *conversation.Conversation, e exchange) error {
	number := c.Next()
	r := pipeline.Record{Conversation: c.ID, Turn: number, Kind: conversation.KindAnswer, Text: tidy(e.assistant), Question: tidy(e.user),
		Options: []conversation.Option{}, Citations: []generation.Citation{}, Trace: pipeline.Trace{
			Queries: []string{}, Passages: []pipeline.PassageTrace{}, Gates: []gate.Decision{}, Stages: []pipeline.StageTime{},
			Notes: []string{"this turn was not run here; it came with a later message"}}}
	since, inARow := number, 0
	if p := c.Pending; p != nil {
		f, err := conversation.Fold(ctx, *p, r.Question, nil)
		if err != nil {
			return err
		}
		switch f.Kind {
		case conversation.ReplyNewQuestion, conversation.ReplyCancel:
		case conversation.ReplyExplain, conversation.ReplyUnclear:
			r.Question, since, inARow = p.Question, p.Since, p.Asked-1
		default:
			r.Question, since, inARow = f.Question, p.Since, p.Asked
		}
		c.Settle(f)
	}
	if asked, options, ok := plain.Clarification(e.assistant); ok {
		p := conversation.Pending{ID: fmt.Sprintf("c%d", number), Gate: string(gate.Pre), Question: r.Question, Text: asked, Options: options,
			Asked: inARow + 1, Since: since, At: time.Now().UTC()}
		if len(options) > 0 {
			p.Gate = string(gate.Post)
		}
		c.Pending = &p
		c.Asked = append(c.Asked, p)
		r.Kind, r.Text, r.Clarification, r.Gate = conversation.KindClarification, asked, p.ID, gate.Stage(p.Gate)
		r.Options = append(r.Options, options...)
	}
	detail, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding a turn: %w", err)
	}
	c.Turns = append(c.Turns, conversation.Turn{Number: number, Text: tidy(e.user), Question: r.Question, Kind: r.Kind, Reply: tidy(e.assistant), Detail: detail})
	return nil
}

// place is the conversation that a request's turn runs in.
type place struct {
	store    conversation.Store
	user     string
	id       string
	before   []exchange // the dialogue so far
	fresh    bool       // made for this turn, and to be found by its dialogue afterwards
	released func()
}

// busy are the conversations in which a turn of this process runs.
type busy struct {
	mu  sync.Mutex
	ids map[string]bool
}

// take claims a conversation, or tells that a turn runs in it.
func (b *busy) take(id string) (release func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ids[id] {
		return nil, false
	}
	if b.ids == nil {
		b.ids = map[string]bool{}
	}
	b.ids[id] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.ids, id)
	}, true
}

// open finds or makes the conversation for the next turn after a dialogue. named is
// the id that the client gave, or "".
func (b *busy) open(ctx context.Context, store conversation.Store, user, named string, before []exchange) (*place, error) {
	p := &place{store: store, user: user, id: named, before: before, released: func() {}}
	if named != "" {
		_, err := store.Load(ctx, named, 1)
		if err == nil || !errors.Is(err, conversation.ErrNotFound) {
			return p, err
		}
	}
	from, turns, err := find(ctx, store, user, before)
	if err != nil {
		return nil, err
	}
	if named == "" && from != nil && turns == len(before) {
		if release, ok := b.take(from.ID); ok {
			c, err := store.Load(ctx, from.ID, 1)
			if err == nil && c.Next()-1 == turns && c.Open == nil {
				p.id, p.released = from.ID, release
				return p, nil
			}
			release() // it has gone on meanwhile
		}
	}
	if named == "" {
		p.id, p.fresh = newID(), true
	}
	err = fork(ctx, store, p.id, user, from, turns, before[turns:])
	if err != nil && !errors.Is(err, errExists) {
		return nil, err
	}
	return p, nil
}

// tidyUpTime is how long the end of a turn may take.
const tidyUpTime = 5 * time.Second

// close ends the turn in which the client was given that text, "" if none. A fresh
// conversation is stored under the digest of its dialogue from now on. close gives the
// conversation's id; it is "" if the dialogue stands in another one, which has gone
// on since.
func (p *place) close(ctx context.Context, user, assistant string) (id string, err error) {
	defer p.released()
	if !p.fresh {
		return p.id, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyUpTime)
	defer cancel()
	if assistant != "" {
		dialogue := append(slices.Clone(p.before), exchange{user, assistant})
		if id, err = p.adopt(ctx, dialogue); err != nil {
			return p.id, err // it is there, and will not be found by its dialogue
		}
	}
	if _, err := p.store.Delete(ctx, conversation.Filter{ID: p.id, User: p.user}); err != nil {
		return id, fmt.Errorf("deleting the conversation %s, which stands as %s: %w", p.id, id, err)
	}
	return id, nil
}

// adopt copies the conversation to the id by which it is found.
func (p *place) adopt(ctx context.Context, dialogue []exchange) (id string, err error) {
	ids := digests(p.user, dialogue)
	id = ids[len(ids)-1]
	c, err := p.store.Load(ctx, p.id, conversation.All)
	if err != nil {
		return "", err
	}
	for i := range c.Turns {
		c.Turns[i].Key = ""
	}
	c.ID, c.Open = id, nil
	switch err = create(ctx, p.store, p.user, c); {
	case errors.Is(err, errExists):
		other, err := p.store.Load(ctx, id, 1)
		if err != nil {
			return "", err
		}
		if other.Next() != c.Next() || other.Open != nil {
			return "", nil
		}
	case err != nil:
		return "", err
	}
	return id, nil
}
