// Package sqlstore is the store of conversations over a SQL database, whichever
// one it is. The packages sqlite and postgres open the database, make the tables
// and give a Dialect.
//
// A conversation is a row; its turns and clarifications are rows that are added.
// A turn costs the same however long the conversation is: its claim reads the
// last turns, and its commit adds rows and writes the conversation's own row.
//
// The claim stands in the conversation's row: who holds it, when it runs out by
// the database's clock, and the question that is being answered. Taking it is
// one UPDATE that only fits a row whose claim is free, so that it needs neither
// a session's lock nor anything else that outlives a transaction. While a turn
// runs its claim is moved on; when its process dies, it runs out.
package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/internal/keylock"
)

// DefaultLease is how long a claim outlives its process.
const DefaultLease = 5 * time.Second

// Options for a store. The zero value works.
type Options struct {
	// Wait is how long Begin waits for a running turn of the same conversation
	// to end. 0 means conversation.DefaultWait.
	Wait time.Duration
	// Queue is how many turns of one conversation may wait in this process. 0
	// means conversation.DefaultQueue, negative none.
	Queue int
	// Lease is how long a claim outlives the process that held it. While the
	// process lives its claims are renewed. Those of processes that share a database
	// differ by less than a minute. 0 means DefaultLease.
	Lease time.Duration
}

// Dialect is how one database differs from another.
type Dialect struct {
	// Rewrite turns a statement into the database's own: parameters are written
	// ?1, ?2, ... and the time now, in microseconds since 1970 by the one clock
	// that all processes share, is written NOW_US.
	Rewrite func(statement string) string
	// Read is the kind of transaction in which several reads see one moment.
	Read *sql.TxOptions
	// Again reports whether a transaction that failed so should be tried again.
	Again func(error) bool
	// Explain says which database an error comes from and what to do.
	Explain func(doing string, err error) error
	// Limit is how long a transaction may take, but for one that deletes, before it
	// fails with ErrLate; 0: as long as its context.
	Limit time.Duration
	// Deleted is called after conversations were deleted; nil does nothing.
	Deleted func(context.Context, *sql.DB) error
}

// Store keeps conversations in a database.
type Store struct {
	db *sql.DB
	d  Dialect
	o  Options

	turns  keylock.Set // of this process: one waits for the database, the rest for it
	ctx    context.Context
	cancel context.CancelFunc
	renews sync.WaitGroup
}

var _ conversation.Store = (*Store)(nil)

// New makes a store over a database that has the tables. It closes db.
func New(db *sql.DB, d Dialect, o Options) *Store {
	o.Wait, o.Queue, o.Lease = cmp.Or(o.Wait, conversation.DefaultWait), cmp.Or(o.Queue, conversation.DefaultQueue), cmp.Or(o.Lease, DefaultLease)
	s := &Store{db: db, d: d, o: o}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// DB is the database.
func (s *Store) DB() *sql.DB { return s.db }

// tx is a transaction that speaks the store's own SQL.
type tx struct {
	*sql.Tx
	ctx     context.Context
	rewrite func(string) string
}

func (t tx) exec(statement string, args ...any) (changed int64, err error) {
	r, err := t.ExecContext(t.ctx, t.rewrite(statement), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (t tx) row(query string, args ...any) *sql.Row {
	return t.QueryRowContext(t.ctx, t.rewrite(query), args...)
}

// bodies gives the column of JSON values that a query yields, decoded.
func bodies[T any](t tx, query string, args ...any) (out []T, err error) {
	rows, err := t.QueryContext(t.ctx, t.rewrite(query), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var body sql.RawBytes
		var v T
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// turns gives the turns that a query yields by their body and detail.
func turns(t tx, query string, args ...any) (out []conversation.Turn, err error) {
	rows, err := t.QueryContext(t.ctx, t.rewrite(query), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var body, detail sql.RawBytes
		var v conversation.Turn
		if err := rows.Scan(&body, &detail); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return nil, err
		}
		if detail != nil {
			v.Detail = slices.Clone(json.RawMessage(detail))
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// ErrLate is the error of a transaction that took longer than Dialect.Limit.
var ErrLate = errors.New("no answer")

// transact runs do in a transaction, all or nothing, and again if the database
// says that this may help.
func (s *Store) transact(ctx context.Context, o *sql.TxOptions, do func(tx) error) error {
	if s.d.Limit == 0 {
		return s.unlimited(ctx, o, do)
	}
	limited, cancel := context.WithTimeout(ctx, s.d.Limit)
	defer cancel()
	err := s.unlimited(limited, o, do)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w within %v (%v)", ErrLate, s.d.Limit, err)
	}
	return err
}

// unlimited is transact without a limit of time.
func (s *Store) unlimited(ctx context.Context, o *sql.TxOptions, do func(tx) error) error {
	try := func() error {
		t, err := s.db.BeginTx(ctx, o)
		if err != nil {
			return err
		}
		defer t.Rollback()
		if err := do(tx{t, ctx, s.d.Rewrite}); err != nil {
			return err
		}
		return t.Commit()
	}
	err := try()
	for n := 0; n < 5 && err != nil && ctx.Err() == nil && s.d.Again != nil && s.d.Again(err); n++ {
		err = try()
	}
	return err
}

// Begin implements conversation.Store.
func (s *Store) Begin(ctx context.Context, r conversation.Request) (conversation.Claim, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, s.o.Wait)
	defer cancel()
	unlock, err := s.turns.Lock(limit, r.Conversation, max(0, s.o.Queue))
	if err != nil {
		return nil, conversation.Busy(ctx, r.Conversation)
	}
	c := &claim{store: s, request: r, owner: rand.Text() + " " + conversation.Holder(), unlock: sync.OnceFunc(unlock)}
	// Only other processes are waited for here, so looking now and then is
	// cheap: one look in each process and conversation.
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		free, err := c.take(limit)
		if err != nil && limit.Err() == nil {
			unlock()
			return nil, s.explain("claiming a turn in", err)
		}
		if free && err == nil {
			break
		}
		select {
		case <-time.After(pause):
		case <-limit.Done():
		}
		if limit.Err() != nil {
			if err != nil { // the time ran out inside the transaction, perhaps after it was stored
				c.drop()
			}
			unlock()
			return nil, conversation.Busy(ctx, r.Conversation)
		}
	}
	c.given = c.stored.Clone()
	c.keep()
	return c, nil
}

// explain leaves the errors that the contract names as they are.
func (s *Store) explain(doing string, err error) error {
	var repeat *conversation.RepeatError
	if err == nil || errors.As(err, &repeat) || errors.Is(err, conversation.ErrUser) || errors.Is(err, conversation.ErrLost) || errors.Is(err, conversation.ErrNotFound) {
		return err
	}
	return s.d.Explain(doing, err)
}

// Load implements conversation.Store.
func (s *Store) Load(ctx context.Context, id string, last int) (c *conversation.Conversation, err error) {
	if err := conversation.CheckID(id); err != nil {
		return nil, err
	}
	err = s.transact(ctx, s.d.Read, func(t tx) error {
		var h head
		var claim sql.NullString
		var left sql.NullInt64
		err := t.row("SELECT owner, title, turns, state, open, claim, expires - NOW_US FROM conversation WHERE id = ?1", id).Scan(&h.owner, &h.title, &h.turns, &h.state, &h.open, &claim, &left)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("conversation %q: %w", id, conversation.ErrNotFound)
		}
		if err != nil {
			return err
		}
		if c, err = h.load(t, id, last, "detail"); err != nil {
			return err
		}
		if h.open.Valid {
			c.Open = new(conversation.Turn)
			if err := json.Unmarshal([]byte(h.open.String), c.Open); err != nil {
				return err
			}
		}
		if claim.Valid && left.Int64 > 0 {
			_, by, _ := strings.Cut(claim.String, " ")
			c.Held = &conversation.Held{By: by, Until: time.Now().UTC().Add(time.Duration(left.Int64) * time.Microsecond)}
		}
		var first sql.NullString
		if h.title == "" && c.Earlier > 0 {
			err = t.row("SELECT body FROM turn WHERE conversation = ?1 AND number = 1", id).Scan(&first)
		} else if len(c.Turns) > 0 {
			first.String, err = encode(c.Turns[0])
		}
		if err == nil {
			c.Title, err = title(h.title, first, h.open)
		}
		return err
	})
	return c, s.explain("reading", err)
}

// head is a conversation's own row.
type head struct {
	owner string
	title string // that it was given
	turns int
	state string
	open  sql.NullString // the turn that runs, or whose process died
}

// load reads what belongs to the row, with the column that is named for the
// turns' details or "NULL".
func (h head) load(t tx, id string, last int, detail string) (*conversation.Conversation, error) {
	c := &conversation.Conversation{ID: id, User: h.owner, Earlier: conversation.Earlier(h.turns, last)}
	err := json.Unmarshal([]byte(h.state), &c.State)
	if err == nil {
		c.Turns, err = turns(t, "SELECT body, "+detail+" FROM turn WHERE conversation = ?1 AND number > ?2 ORDER BY number", id, c.Earlier)
	}
	if err == nil {
		c.Asked, err = bodies[conversation.Pending](t, `SELECT body FROM (SELECT number, body FROM asked WHERE conversation = ?1
			ORDER BY number DESC LIMIT ?2) AS last ORDER BY number`, id, conversation.MaxAsked)
	}
	if err == nil && c.Next() != h.turns+1 {
		err = fmt.Errorf("it has %d turns and %d were found", h.turns, c.Next()-1)
	}
	if err != nil {
		return nil, fmt.Errorf("conversation %q: %w", id, err)
	}
	return c, nil
}

// title is the title that a conversation was given, or else its first question,
// which stands in its first turn or, before there is one, in the open one.
func title(given string, first, open sql.NullString) (string, error) {
	if given != "" {
		return given, nil
	}
	body := first.String
	if body == "" {
		body = open.String
	}
	if body == "" {
		return "", nil
	}
	var t struct{ Text string }
	err := json.Unmarshal([]byte(body), &t)
	return conversation.Title(t.Text), err
}

// Rename implements conversation.Store.
func (s *Store) Rename(ctx context.Context, id, title string) error {
	if err := conversation.CheckID(id); err != nil {
		return err
	}
	err := s.transact(ctx, nil, func(t tx) error {
		n, err := t.exec("UPDATE conversation SET title = ?2 WHERE id = ?1", id, conversation.CleanTitle(title))
		if err == nil && n == 0 {
			err = fmt.Errorf("conversation %q: %w", id, conversation.ErrNotFound)
		}
		return err
	})
	return s.explain("renaming one of the", err)
}

// where gives a filter's condition and its parameters.
func where(f conversation.Filter, more ...string) (string, []any) {
	conditions, args := more, []any(nil)
	add := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if f.ID != "" {
		add("id = ?%d", f.ID)
	}
	if f.User != "" {
		add("owner = ?%d", f.User)
	}
	if !f.Before.IsZero() {
		add("changed < ?%d", f.Before.UnixMicro())
	}
	if len(conditions) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(conditions, " AND "), args
}

// List implements conversation.Store.
func (s *Store) List(ctx context.Context, f conversation.Filter) iter.Seq2[conversation.Info, error] {
	return func(yield func(conversation.Info, error) bool) {
		condition, args := where(f)
		query := `SELECT id, owner, title, turns, created, changed, state, claim IS NOT NULL AND expires > NOW_US, open,
			(SELECT body FROM turn WHERE conversation = conversation.id AND number = 1) FROM conversation` + condition + " ORDER BY changed DESC, id"
		if f.Limit > 0 {
			query += fmt.Sprintf(" LIMIT %d", f.Limit)
		}
		rows, err := s.db.QueryContext(ctx, s.d.Rewrite(query), args...)
		if err != nil {
			yield(conversation.Info{}, s.explain("listing", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var i conversation.Info
			var created, changed int64
			var state string
			var carried conversation.State
			var given string
			var open, first sql.NullString
			err := rows.Scan(&i.ID, &i.User, &given, &i.Turns, &created, &changed, &state, &i.Running, &open, &first)
			if err == nil {
				err = json.Unmarshal([]byte(state), &carried)
			}
			if err == nil {
				i.Title, err = title(given, first, open)
			}
			if err != nil {
				yield(conversation.Info{}, s.explain("listing", err))
				return
			}
			i.Created, i.Changed, i.Pending = time.UnixMicro(created).UTC(), time.UnixMicro(changed).UTC(), carried.Pending != nil
			if !yield(i, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(conversation.Info{}, s.explain("listing", err))
		}
	}
}

// Delete implements conversation.Store.
func (s *Store) Delete(ctx context.Context, f conversation.Filter) (int, error) {
	if f.IsZero() {
		return 0, conversation.ErrNoFilter
	}
	var running []string
	if !f.Before.IsZero() {
		running = []string{"(claim IS NULL OR expires <= NOW_US)"}
	}
	condition, args := where(f, running...)
	var n int64
	err := s.unlimited(ctx, nil, func(t tx) (err error) {
		n, err = t.exec("DELETE FROM conversation"+condition, args...)
		return err
	})
	if err == nil && n > 0 && s.d.Deleted != nil {
		err = s.d.Deleted(ctx, s.db)
	}
	return int(n), s.explain("deleting from", err)
}

// Close implements conversation.Store. Claims that are still held run out.
func (s *Store) Close() error {
	s.cancel()
	s.renews.Wait()
	return s.explain("closing", s.db.Close())
}
