package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/askback/askback/conversation/internal/keylock"
)

// DefaultWait is how long a store waits for a running turn to end, unless its
// options say otherwise.
const DefaultWait = 30 * time.Second

var errClosed = errors.New("the store of conversations is closed")

// Memory keeps conversations in memory, for as long as the process lives. The
// zero value is ready.
type Memory struct {
	// Wait is how long Begin waits for a running turn of the same conversation
	// to end. 0 means DefaultWait. Set it before first use.
	Wait time.Duration

	turns keylock.Set

	mu     sync.Mutex
	closed bool
	kept   map[string]*Conversation
	claims map[string]*memoryClaim
	order  []string // ids, the most recently changed last
}

var _ Store = (*Memory)(nil)

// NewMemory gives an empty store in memory.
func NewMemory() *Memory { return &Memory{} }

// Begin implements Store.
func (m *Memory) Begin(ctx context.Context, id string) (Claim, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	wait := m.Wait
	if wait == 0 {
		wait = DefaultWait
	}
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	unlock, err := m.turns.Lock(limit, id)
	if err != nil {
		return nil, Busy(ctx, id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		unlock()
		return nil, errClosed
	}
	stored := m.kept[id]
	if stored == nil {
		stored = &Conversation{ID: id}
	}
	c := &memoryClaim{store: m, stored: stored, given: stored.Clone(), unlock: sync.OnceFunc(unlock)}
	if m.claims == nil {
		m.claims = make(map[string]*memoryClaim)
	}
	m.claims[id] = c
	return c, nil
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
func (m *Memory) Load(ctx context.Context, id string) (*Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	c := m.kept[id]
	if c == nil {
		return nil, fmt.Errorf("conversation %q: %w", id, ErrNotFound)
	}
	return c.Clone(), nil
}

// List implements Store.
func (m *Memory) List(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	ids := slices.Clone(m.order)
	slices.Reverse(ids)
	return ids, nil
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	if m.kept[id] == nil {
		return fmt.Errorf("conversation %q: %w", id, ErrNotFound)
	}
	delete(m.kept, id)
	delete(m.claims, id) // a turn that is running now is lost
	m.order = slices.DeleteFunc(m.order, func(o string) bool { return o == id })
	return nil
}

// Close implements Store. What the store held is forgotten.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.kept, m.claims, m.order = true, nil, nil, nil
	return nil
}

type memoryClaim struct {
	store  *Memory
	stored *Conversation // as kept; never changed
	given  *Conversation // the caller's copy
	unlock func()
}

func (c *memoryClaim) Conversation() *Conversation { return c.given }

func (c *memoryClaim) Commit(ctx context.Context, next *Conversation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, err := Next(c.stored, next, time.Now())
	if err != nil {
		return err
	}
	m, id := c.store, c.stored.ID
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[id] != c {
		return fmt.Errorf("conversation %q: %w", id, ErrLost)
	}
	if m.kept == nil {
		m.kept = make(map[string]*Conversation)
	}
	m.kept[id] = n
	m.order = append(slices.DeleteFunc(m.order, func(o string) bool { return o == id }), id)
	delete(m.claims, id)
	c.unlock()
	return nil
}

func (c *memoryClaim) Release() {
	m, id := c.store, c.stored.ID
	m.mu.Lock()
	if m.claims[id] == c {
		delete(m.claims, id)
	}
	m.mu.Unlock()
	c.unlock()
}
