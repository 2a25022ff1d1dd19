package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/askback/askback/conversation/internal/keylock"
)

const (
	// DefaultWait is how long a store waits for a running turn to end, unless
	// its options say otherwise.
	DefaultWait = 30 * time.Second
	// DefaultQueue is how many turns may wait for one that runs, in each process,
	// unless the store's options say otherwise.
	DefaultQueue = 100
	// MaxAsked is how many clarifications a conversation is read with, the last
	// ones.
	MaxAsked = 128
)

// ErrClosed says that the store was closed.
var ErrClosed = errors.New("the store of conversations is closed")

// ErrNoFilter says that a filter would leave every conversation where that is
// not meant.
var ErrNoFilter = errors.New("the filter is empty and would delete every conversation; name a conversation, a user or an age")

// Memory keeps conversations in memory, for as long as the process lives. The
// zero value is ready.
type Memory struct {
	// Wait is how long Begin waits for a running turn of the same conversation
	// to end. 0 means DefaultWait. Set it before first use.
	Wait time.Duration
	// Queue is how many turns may wait for one that runs. 0 means DefaultQueue,
	// negative none. Set it before first use.
	Queue int

	turns keylock.Set

	mu     sync.Mutex
	closed bool
	kept   map[string]*memoryConversation
	last   time.Time // of the last change, so that no two are alike
}

// memoryConversation is a conversation as kept. Turns are only ever added, so
// that a claim may look at them without a copy.
type memoryConversation struct {
	user             string
	title            string // that it was given
	created, changed time.Time
	turns            []Turn
	keys             map[string]int // index of the turn with that key
	asked            []Pending
	state            State
	claim            *memoryClaim // that holds the next turn, or nil
}

var _ Store = (*Memory)(nil)

// NewMemory gives an empty store in memory.
func NewMemory() *Memory { return &Memory{} }

// Begin implements Store.
func (m *Memory) Begin(ctx context.Context, r Request) (Claim, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, cmp.Or(m.Wait, DefaultWait))
	defer cancel()
	unlock, err := m.turns.Lock(limit, r.Conversation, max(0, cmp.Or(m.Queue, DefaultQueue)))
	if err != nil {
		return nil, Busy(ctx, r.Conversation)
	}
	unlock = sync.OnceFunc(unlock)
	c, err := m.claim(r)
	if err != nil {
		unlock()
		return nil, err
	}
	c.unlock = unlock
	return c, nil
}

func (m *Memory) claim(r Request) (*memoryClaim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	k := m.kept[r.Conversation]
	switch {
	case k == nil:
		now := m.now()
		k = &memoryConversation{user: r.User, created: now, changed: now, keys: map[string]int{}}
		if m.kept == nil {
			m.kept = make(map[string]*memoryConversation)
		}
		m.kept[r.Conversation] = k
	case k.user != r.User:
		return nil, fmt.Errorf("conversation %q: %w", r.Conversation, ErrUser)
	}
	if i, stored := k.keys[r.Key]; stored && r.Key != "" {
		return nil, &RepeatError{k.turns[i].clone()}
	}
	c := &memoryClaim{store: m, in: k, request: r, stored: k.view(r.Conversation, r.Last), open: r.Open(len(k.turns)+1, time.Now())}
	c.stored.Turns, c.stored.Title = slices.Clone(c.stored.Turns), ""
	for i := range c.stored.Turns {
		c.stored.Turns[i].Detail = nil
	}
	c.given = c.stored.Clone()
	k.claim = c
	return c, nil
}

// now is the time, later than any that was given before.
func (m *Memory) now() time.Time {
	t := time.Now().UTC().Round(0)
	if !t.After(m.last) {
		t = m.last.Add(1)
	}
	m.last = t
	return t
}

// view is the conversation with its last turns. Nothing in it may be changed.
func (k *memoryConversation) view(id string, last int) *Conversation {
	first := Earlier(len(k.turns), last)
	return &Conversation{
		ID: id, User: k.user, Title: k.titled(), Earlier: first, Turns: slices.Clip(k.turns[first:]), State: k.state,
		Asked: slices.Clip(k.asked[max(0, len(k.asked)-MaxAsked):]),
	}
}

// Busy gives the error of a Begin that waited in vain: it is ErrBusy, and the
// context's error too if it was the context that ended the wait.
func Busy(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("conversation %q: %w (%w)", id, ErrBusy, err)
	}
	return fmt.Errorf("conversation %q: %w", id, ErrBusy)
}

// Load implements Store.
func (m *Memory) Load(ctx context.Context, id string, last int) (*Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	k := m.kept[id]
	if k == nil {
		return nil, fmt.Errorf("conversation %q: %w", id, ErrNotFound)
	}
	c := k.view(id, last)
	if k.claim != nil {
		c.Open, c.Held = &k.claim.open, &Held{By: Holder()}
	}
	return c.Clone(), nil
}

// List implements Store.
func (m *Memory) List(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		m.mu.Lock()
		if m.closed {
			m.mu.Unlock()
			yield(Info{}, ErrClosed)
			return
		}
		var all []Info
		for id, k := range m.kept {
			if k.fits(id, f) {
				all = append(all, Info{ID: id, User: k.user, Title: k.titled(), Turns: len(k.turns), Created: k.created, Changed: k.changed,
					Pending: k.state.Pending != nil, Running: k.claim != nil})
			}
		}
		m.mu.Unlock()
		slices.SortFunc(all, func(a, b Info) int { return b.Changed.Compare(a.Changed) })
		if f.Limit > 0 {
			all = all[:min(f.Limit, len(all))]
		}
		for _, i := range all {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// titled is the conversation's title.
func (k *memoryConversation) titled() string {
	switch {
	case k.title != "":
		return k.title
	case len(k.turns) > 0:
		return Title(k.turns[0].Text)
	case k.claim != nil:
		return Title(k.claim.open.Text)
	}
	return ""
}

// Rename implements Store.
func (m *Memory) Rename(ctx context.Context, id, title string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	k := m.kept[id]
	if k == nil {
		return fmt.Errorf("conversation %q: %w", id, ErrNotFound)
	}
	k.title = CleanTitle(title)
	return nil
}

func (k *memoryConversation) fits(id string, f Filter) bool {
	return (f.ID == "" || f.ID == id) && (f.User == "" || f.User == k.user) && (f.Before.IsZero() || k.changed.Before(f.Before))
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, f Filter) (n int, err error) {
	if f.IsZero() {
		return 0, ErrNoFilter
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, ErrClosed
	}
	for id, k := range m.kept {
		if k.fits(id, f) && (f.Before.IsZero() || k.claim == nil) {
			delete(m.kept, id)
			k.claim = nil // a turn that is running now is lost
			n++
		}
	}
	return n, nil
}

// Close implements Store. What the store held is forgotten.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.kept {
		k.claim = nil
	}
	m.closed, m.kept = true, nil
	return nil
}

type memoryClaim struct {
	store   *Memory
	in      *memoryConversation
	request Request
	open    Turn          // as it is kept while it runs
	stored  *Conversation // as kept; never changed
	given   *Conversation // the caller's copy
	unlock  func()
}

func (c *memoryClaim) Conversation() *Conversation { return c.given }

func (c *memoryClaim) Commit(ctx context.Context, next *Conversation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, err := Next(c.stored, next, c.request, time.Now())
	if err != nil {
		return err
	}
	m, k := c.store, c.in
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.claim != c {
		return fmt.Errorf("conversation %q: %w", c.stored.ID, ErrLost)
	}
	for _, t := range n.Turns[len(c.stored.Turns):] {
		if t.Settled() {
			k.keys[t.Key] = len(k.turns)
		}
		k.turns = append(k.turns, t)
	}
	for _, a := range ChangedAsked(c.stored, n) {
		if i := slices.IndexFunc(k.asked, func(b Pending) bool { return b.ID == a.ID }); i >= 0 {
			k.asked[i] = a // only the holder of the claim can still see the old one
		} else {
			k.asked = append(k.asked, a)
		}
	}
	k.state, k.changed, k.claim = n.State, m.now(), nil
	c.unlock()
	return nil
}

// ChangedAsked gives the clarifications of next that are new or differ from the
// stored ones. It is a part of Claim.Commit that all stores share.
func ChangedAsked(stored, next *Conversation) []Pending {
	var changed []Pending
	for i, a := range next.Asked {
		if i < len(stored.Asked) && reflect.DeepEqual(a, stored.Asked[i]) {
			continue
		}
		changed = append(changed, a)
	}
	return changed
}

func (c *memoryClaim) Release() {
	m, k := c.store, c.in
	m.mu.Lock()
	if k.claim == c {
		k.claim = nil
		if len(k.turns) == 0 {
			delete(m.kept, c.stored.ID)
		}
	}
	m.mu.Unlock()
	c.unlock()
}
