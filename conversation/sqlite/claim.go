package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/askback/askback/conversation"
)

// claim is a row of the claim table that carries our name.
type claim struct {
	store  *Store
	owner  string
	stored *conversation.Conversation // as kept; never changed
	given  *conversation.Conversation // the caller's copy
	unlock func()
	stop   context.CancelFunc // ends the renewal
	ended  chan struct{}      // closed when the renewal has ended
}

// take claims conversation id if it is free, or if its claim has run out, and
// reads it in the same transaction.
func (c *claim) take(ctx context.Context, id string) (free bool, err error) {
	err = c.store.write(ctx, func(tx *sql.Tx) error {
		now := time.Now()
		r, err := tx.ExecContext(ctx, `INSERT INTO claim (conversation, owner, expires) VALUES (?1, ?2, ?3)
			ON CONFLICT (conversation) DO UPDATE SET owner = ?2, expires = ?3 WHERE expires <= ?4`,
			id, c.owner, now.Add(c.store.lease).UnixMilli(), now.UnixMilli())
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if err != nil || n == 0 {
			return err
		}
		free = true
		c.stored, _, err = load(ctx, tx, id)
		return err
	})
	return free, err
}

// keep renews the claim until it ends, so that only a dead process's runs out.
func (c *claim) keep() {
	ctx, stop := context.WithCancel(c.store.ctx)
	c.stop, c.ended = stop, make(chan struct{})
	c.store.renews.Go(func() {
		defer close(c.ended)
		tick := time.NewTicker(c.store.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				// A renewal that fails is tried again at the next tick; if the
				// claim is lost, Commit finds out.
				_, _ = c.store.db.ExecContext(ctx, "UPDATE claim SET expires = ? WHERE conversation = ? AND owner = ?",
					now.Add(c.store.lease).UnixMilli(), c.stored.ID, c.owner)
			}
		}
	})
}

func (c *claim) Conversation() *conversation.Conversation { return c.given }

func (c *claim) Commit(ctx context.Context, next *conversation.Conversation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, id := c.store, c.stored.ID
	n, err := conversation.Next(c.stored, next, time.Now())
	if err != nil {
		return err
	}
	pending, asked, turns, err := encode(n, len(c.stored.Turns))
	if err != nil {
		return fmt.Errorf("committing to conversation %q: %w", id, err)
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "DELETE FROM claim WHERE conversation = ? AND owner = ?", id, c.owner)
		if err != nil {
			return err
		}
		if held, err := r.RowsAffected(); err != nil {
			return err
		} else if held == 0 {
			return fmt.Errorf("conversation %q: %w", id, conversation.ErrLost)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO conversation (id, changed, pending, asked)
			VALUES (?1, (SELECT coalesce(max(changed), 0) + 1 FROM conversation), ?2, ?3)
			ON CONFLICT (id) DO UPDATE SET changed = excluded.changed, pending = ?2, asked = ?3`, id, pending, asked); err != nil {
			return err
		}
		for i, body := range turns {
			if _, err := tx.ExecContext(ctx, "INSERT INTO turn (conversation, number, body) VALUES (?, ?, ?)",
				id, len(c.stored.Turns)+1+i, body); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, conversation.ErrLost):
		return err
	case err != nil:
		return s.explain("writing to", err)
	}
	c.end()
	return nil
}

// encode gives a conversation as it is kept, without the turns that are stored
// already.
func encode(c *conversation.Conversation, stored int) (pending, asked sql.NullString, turns []string, err error) {
	j := func(v any) (s sql.NullString) {
		b, e := json.Marshal(v)
		err = errors.Join(err, e)
		return sql.NullString{String: string(b), Valid: true}
	}
	if c.Pending != nil {
		pending = j(c.Pending)
	}
	if c.Asked != nil {
		asked = j(c.Asked)
	}
	for _, t := range c.Turns[stored:] {
		turns = append(turns, j(t).String)
	}
	return pending, asked, turns, err
}

// Release implements conversation.Claim. If the file cannot be written now the
// claim runs out by itself.
func (c *claim) Release() {
	c.drop(c.stored.ID)
	c.end()
}

// drop takes our row away, if it is there.
func (c *claim) drop(id string) {
	ctx, cancel := context.WithTimeout(c.store.ctx, 5*time.Second)
	defer cancel()
	_, _ = c.store.db.ExecContext(ctx, "DELETE FROM claim WHERE conversation = ? AND owner = ?", id, c.owner)
}

// end stops the renewal and lets the next claim of this process go on.
func (c *claim) end() {
	c.stop()
	<-c.ended
	c.unlock()
}
