package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/askback/askback/conversation"
)

// claim is the right to write a conversation's next turn: the conversation's row
// carries its owner.
type claim struct {
	store   *Store
	request conversation.Request
	owner   string                     // names this claim: random letters, a space, and the process as conversation.Holder names it
	stored  *conversation.Conversation // as kept; never changed
	given   *conversation.Conversation // the caller's copy
	unlock  func()
	over    bool
	stop    context.CancelFunc // ends the renewal
	ended   chan struct{}      // closed when the renewal has ended
}

// tooFar, and a lease, is how far ahead no claim ends. One that seems to was made
// before the clock was set back, and would be waited for as long as it was set back;
// its holder, if there is one, finds it lost.
const tooFar = time.Minute

// take claims the conversation if it is free, or if its claim has run out, keeps
// the question, and reads the conversation, all in one transaction.
func (c *claim) take(ctx context.Context) (free bool, err error) {
	r := c.request
	lease := c.store.o.Lease.Microseconds()
	err = c.store.transact(ctx, nil, func(t tx) error {
		free = false
		var h head
		err := t.row(`UPDATE conversation SET claim = ?2, expires = NOW_US + ?3
			WHERE id = ?1 AND (claim IS NULL OR expires <= NOW_US OR expires > NOW_US + ?4) RETURNING owner, turns, state, open`,
			r.Conversation, c.owner, lease, lease+tooFar.Microseconds()).Scan(&h.owner, &h.turns, &h.state, &h.open)
		if errors.Is(err, sql.ErrNoRows) {
			return c.first(t, &free)
		}
		if err != nil {
			return err
		}
		if h.owner != r.User {
			return fmt.Errorf("conversation %q: %w", r.Conversation, conversation.ErrUser)
		}
		if err := c.repeated(t); err != nil {
			return err
		}
		if err := c.abandon(t, &h); err != nil {
			return err
		}
		open, err := encode(r.Open(h.turns+1, time.Now()))
		if err != nil {
			return err
		}
		if _, err := t.exec("UPDATE conversation SET open = ?2, turns = ?3 WHERE id = ?1", r.Conversation, open, h.turns); err != nil {
			return err
		}
		if c.stored, err = h.load(t, r.Conversation, r.Last, "NULL"); err != nil {
			return err
		}
		free = true
		return nil
	})
	return free, err
}

// first makes the conversation, if there is none of its id.
func (c *claim) first(t tx, free *bool) error {
	r := c.request
	open, err := encode(r.Open(1, time.Now()))
	if err != nil {
		return err
	}
	made, err := t.exec(`INSERT INTO conversation (id, owner, created, changed, turns, claim, expires, open)
		VALUES (?1, ?2, NOW_US, NOW_US, 0, ?3, NOW_US + ?4, ?5) ON CONFLICT (id) DO NOTHING`,
		r.Conversation, r.User, c.owner, c.store.o.Lease.Microseconds(), open)
	if err != nil {
		return err
	}
	if made == 0 { // another turn holds it
		var owner string
		err := t.row("SELECT owner FROM conversation WHERE id = ?1", r.Conversation).Scan(&owner)
		switch {
		case errors.Is(err, sql.ErrNoRows): // no more: the next look finds it free
			return nil
		case err != nil:
			return err
		case owner != r.User:
			return fmt.Errorf("conversation %q: %w", r.Conversation, conversation.ErrUser)
		}
		return c.repeated(t)
	}
	c.stored = &conversation.Conversation{ID: r.Conversation, User: r.User}
	*free = true
	return nil
}

// repeated is a RepeatError if a turn with the request's key is stored.
func (c *claim) repeated(t tx) error {
	if c.request.Key == "" {
		return nil
	}
	found, err := turns(t, "SELECT body, detail FROM turn WHERE conversation = ?1 AND key = ?2", c.request.Conversation, c.request.Key)
	if err == nil && len(found) > 0 {
		return &conversation.RepeatError{Turn: found[0]}
	}
	return err
}

// abandon keeps the turn of a process that died as one that was broken off,
// unless it is the request's own.
func (c *claim) abandon(t tx, h *head) error {
	if !h.open.Valid {
		return nil
	}
	var open conversation.Turn
	if err := json.Unmarshal([]byte(h.open.String), &open); err != nil {
		return fmt.Errorf("conversation %q: %w", c.request.Conversation, err)
	}
	if open.Key != "" && open.Key == c.request.Key {
		return nil
	}
	body, err := encode(open.Abandoned())
	if err != nil {
		return err
	}
	h.turns++
	_, err = t.exec("INSERT INTO turn (conversation, number, body) VALUES (?1, ?2, ?3)", c.request.Conversation, h.turns, body)
	return err
}

// encode gives a value as it is kept.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// keep renews the claim until it ends, so that only a dead process's runs out.
func (c *claim) keep() {
	ctx, stop := context.WithCancel(c.store.ctx)
	c.stop, c.ended = stop, make(chan struct{})
	c.store.renews.Go(func() {
		defer close(c.ended)
		tick := time.NewTicker(c.store.o.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// A renewal that fails is tried again at the next tick; if the
				// claim is lost, Commit finds out.
				_ = c.store.transact(ctx, nil, func(t tx) error {
					_, err := t.exec("UPDATE conversation SET expires = NOW_US + ?3 WHERE id = ?1 AND claim = ?2",
						c.request.Conversation, c.owner, c.store.o.Lease.Microseconds())
					return err
				})
			}
		}
	})
}

func (c *claim) Conversation() *conversation.Conversation { return c.given }

func (c *claim) Commit(ctx context.Context, next *conversation.Conversation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id := c.request.Conversation
	n, err := conversation.Next(c.stored, next, c.request, time.Now())
	if err != nil {
		return err
	}
	state, err := encode(n.State)
	if err != nil {
		return fmt.Errorf("committing to conversation %q: %w", id, err)
	}
	err = c.store.transact(ctx, nil, func(t tx) error {
		held, err := t.exec(`UPDATE conversation SET claim = NULL, expires = NULL, open = NULL, changed = NOW_US, turns = ?3, state = ?4
			WHERE id = ?1 AND claim = ?2`, id, c.owner, n.Next()-1, state)
		if err != nil {
			return err
		}
		if held == 0 {
			return fmt.Errorf("conversation %q: %w", id, conversation.ErrLost)
		}
		for _, turn := range n.Turns[len(c.stored.Turns):] {
			detail := sql.NullString{String: string(turn.Detail), Valid: len(turn.Detail) > 0}
			turn.Detail = nil
			body, err := encode(turn)
			if err != nil {
				return err
			}
			key := sql.NullString{String: turn.Key, Valid: turn.Settled()}
			if _, err := t.exec("INSERT INTO turn (conversation, number, key, body, detail) VALUES (?1, ?2, ?3, ?4, ?5)", id, turn.Number, key, body, detail); err != nil {
				return err
			}
		}
		for _, asked := range conversation.ChangedAsked(c.stored, n) {
			body, err := encode(asked)
			if err != nil {
				return err
			}
			if _, err := t.exec(`INSERT INTO asked (conversation, id, number, body)
				VALUES (?1, ?2, (SELECT coalesce(max(number), 0) + 1 FROM asked WHERE conversation = ?1), ?3)
				ON CONFLICT (conversation, id) DO UPDATE SET body = excluded.body`, id, asked.ID, body); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return c.store.explain("writing to", err)
	}
	c.end()
	return nil
}

// Release implements conversation.Claim. If the database cannot be reached now
// the claim runs out by itself.
func (c *claim) Release() {
	if !c.over {
		c.drop()
		c.end()
	}
}

// drop frees the conversation, if it is still claimed, and takes it away if it
// has no turns.
func (c *claim) drop() {
	ctx, cancel := context.WithTimeout(c.store.ctx, 5*time.Second)
	defer cancel()
	_ = c.store.transact(ctx, nil, func(t tx) error {
		held, err := t.exec("UPDATE conversation SET claim = NULL, expires = NULL, open = NULL WHERE id = ?1 AND claim = ?2", c.request.Conversation, c.owner)
		if err != nil || held == 0 {
			return err
		}
		_, err = t.exec("DELETE FROM conversation WHERE id = ?1 AND turns = 0", c.request.Conversation)
		return err
	})
}

// end stops the renewal and lets the next claim of this process go on.
func (c *claim) end() {
	c.over = true
	c.stop()
	<-c.ended
	c.unlock()
}
