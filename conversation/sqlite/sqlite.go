package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/internal/keylock"
)

const (
	application = 0x61736b63 // "askc", SQLite's application_id of a store of conversations
	version     = 1          // of the schema, SQLite's user_version
)

// schema makes an empty file into a store. A turn is kept as the JSON of
// conversation.Turn, so that a NUL byte in a text is no special case.
const schema = `
CREATE TABLE conversation (
	id      TEXT PRIMARY KEY,
	changed INTEGER NOT NULL,          -- counts commits over all conversations
	pending TEXT,                      -- JSON of conversation.Pending, or null
	asked   TEXT                       -- JSON of []conversation.Pending, or null
);
CREATE INDEX conversation_changed ON conversation (changed);
CREATE TABLE turn (
	conversation TEXT    NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	number       INTEGER NOT NULL,
	body         TEXT    NOT NULL,     -- JSON of conversation.Turn
	UNIQUE (conversation, number)
);
CREATE TABLE claim (
	conversation TEXT PRIMARY KEY,     -- a conversation may be claimed before it exists
	owner        TEXT    NOT NULL,     -- names one claim, not a process
	expires      INTEGER NOT NULL      -- Unix time in milliseconds
);`

// Options for a store. The zero value works.
type Options struct {
	// Wait is how long Begin waits for a running turn of the same conversation
	// to end. 0 means conversation.DefaultWait.
	Wait time.Duration
	// Lease is how long a claim outlives the process that held it. While the
	// process lives its claims are renewed. 0 means 15 seconds.
	Lease time.Duration
}

// FileError says that a file cannot be used as a store of conversations.
type FileError struct {
	Path    string
	Problem string // what is wrong, and what to do
	Err     error  // SQLite's own error, if there is one
}

func (e *FileError) Error() string {
	s := fmt.Sprintf("conversations in %s: %s", e.Path, e.Problem)
	if e.Err != nil {
		s += " (" + e.Err.Error() + ")"
	}
	return s
}

// Unwrap gives SQLite's own error.
func (e *FileError) Unwrap() error { return e.Err }

// Store keeps conversations in one SQLite file.
type Store struct {
	path  string
	db    *sql.DB
	wait  time.Duration
	lease time.Duration

	turns  keylock.Set // of this process: one waits for the file, the rest for it
	ctx    context.Context
	cancel context.CancelFunc
	renews sync.WaitGroup
}

var _ conversation.Store = (*Store)(nil)

// Open opens the store in the file at path, and makes it if there is none. A
// file that is damaged or something else is a *FileError and stays as it is.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.Wait == 0 {
		o.Wait = conversation.DefaultWait
	}
	if o.Lease == 0 {
		o.Lease = 15 * time.Second
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("conversations in %s: %w", path, err)
	}
	db, err := sql.Open("sqlite", dsn(abs))
	if err != nil {
		return nil, fmt.Errorf("conversations in %s: %w", path, err)
	}
	db.SetMaxOpenConns(4)
	s := &Store{path: path, db: db, wait: o.Wait, lease: o.Lease}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.prepare(ctx); err != nil {
		db.Close()
		s.cancel()
		return nil, s.explain("opening", err)
	}
	return s, nil
}

// pragmas are set on every connection and read back when the store is opened.
var pragmas = []struct{ name, set, got string }{
	{"busy_timeout", "10000", "10000"},
	{"foreign_keys", "1", "1"},
	{"synchronous", "FULL", "2"},
}

// dsn names the file with the pragmas of each connection. Transactions begin as
// writers: one that reads first and then writes could fail half way.
func dsn(path string) string {
	q := url.Values{"_txlock": {"immediate"}}
	for _, p := range pragmas {
		q.Add("_pragma", p.name+"("+p.set+")")
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}
	if !strings.HasPrefix(u.Path, "/") { // a drive letter
		u.Path = "/" + u.Path
	}
	return u.String()
}

// prepare looks whose file it is before anything in it is changed, then makes
// the tables if it is new.
func (s *Store) prepare(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	pragma := func(name string) (v string, err error) {
		err = conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&v)
		return v, err
	}
	for _, p := range pragmas {
		switch v, err := pragma(p.name); {
		case err != nil:
			return err
		case v != p.got:
			return fmt.Errorf("SQLite did not take the setting %s = %s, it is %q", p.name, p.set, v)
		}
	}
	fresh, err := s.ours(ctx, conn)
	if err != nil {
		return err
	}
	if mode, err := pragma("journal_mode = WAL"); err != nil {
		return err
	} else if mode != "wal" {
		return fmt.Errorf("SQLite did not take the setting journal_mode = WAL, it is %q; the file's folder may be read-only or on a network drive", mode)
	}
	if !fresh {
		return nil
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if fresh, err := s.ours(ctx, tx); err != nil || !fresh {
		return err // another process was first
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("%s PRAGMA application_id = %d; PRAGMA user_version = %d;", schema, application, version)); err != nil {
		return err
	}
	return tx.Commit()
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ours says whether the file is empty, to be made into a store. One that is
// neither empty nor a store is an error.
func (s *Store) ours(ctx context.Context, q querier) (fresh bool, err error) {
	var app, schemaVersion, tables int
	for what, v := range map[string]*int{"PRAGMA application_id": &app, "PRAGMA user_version": &schemaVersion, "SELECT count(*) FROM sqlite_schema": &tables} {
		if err := q.QueryRowContext(ctx, what).Scan(v); err != nil {
			return false, err
		}
	}
	switch {
	case app == 0 && schemaVersion == 0 && tables == 0:
		return true, nil
	case app != application:
		return false, &FileError{Path: s.path, Problem: "this is the database of another program; it was left as it is; give another path"}
	case schemaVersion != version:
		return false, &FileError{Path: s.path, Problem: fmt.Sprintf("the file's schema is version %d and this program knows version %d; it was left as it is; use the program that wrote it, or a newer one", schemaVersion, version)}
	}
	return false, nil
}

// explain says which file an error comes from. Context errors stay what they
// are.
func (s *Store) explain(doing string, err error) error {
	var file *FileError
	if err == nil || errors.As(err, &file) {
		return err
	}
	var se *sqlite.Error
	if errors.As(err, &se) {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_NOTADB:
			return &FileError{Path: s.path, Problem: "this is not a SQLite database, or its beginning is damaged; it was left as it is; give another path, or restore it from a copy", Err: err}
		case sqlite3.SQLITE_CORRUPT:
			return &FileError{Path: s.path, Problem: "the database is damaged; it was left as it is; restore it from a copy, or read what can be saved with sqlite3's .recover", Err: err}
		case sqlite3.SQLITE_CANTOPEN:
			return &FileError{Path: s.path, Problem: "the file cannot be opened; see that its folder exists and can be written to", Err: err}
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
			return &FileError{Path: s.path, Problem: "the file cannot be written to; see its permissions", Err: err}
		case sqlite3.SQLITE_FULL:
			return &FileError{Path: s.path, Problem: "the disk is full; nothing was stored", Err: err}
		}
	}
	return fmt.Errorf("%s conversations in %s: %w", doing, s.path, err)
}

// write runs do in a transaction that begins as a writer. It is all or nothing.
func (s *Store) write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Begin implements conversation.Store.
func (s *Store) Begin(ctx context.Context, id string) (conversation.Claim, error) {
	if err := conversation.CheckID(id); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	unlock, err := s.turns.Lock(limit, id)
	if err != nil {
		return nil, conversation.Busy(ctx, id)
	}
	c := &claim{store: s, owner: rand.Text(), unlock: sync.OnceFunc(unlock)}
	// Only other processes are waited for here, so looking now and then is
	// cheap: one look in each process and conversation.
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		free, err := c.take(limit, id)
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
				c.drop(id)
			}
			unlock()
			return nil, conversation.Busy(ctx, id)
		}
	}
	c.given = c.stored.Clone()
	c.keep()
	return c, nil
}

// Load implements conversation.Store.
func (s *Store) Load(ctx context.Context, id string) (*conversation.Conversation, error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one moment's state, without keeping writers out
	if err != nil {
		return nil, s.explain("reading", err)
	}
	defer tx.Rollback()
	c, found, err := load(ctx, tx, id)
	if err != nil {
		return nil, s.explain("reading", err)
	}
	if !found {
		return nil, fmt.Errorf("conversation %q: %w", id, conversation.ErrNotFound)
	}
	return c, nil
}

// load reads a conversation; an unknown one is empty.
func load(ctx context.Context, tx *sql.Tx, id string) (c *conversation.Conversation, found bool, err error) {
	c = &conversation.Conversation{ID: id}
	var pending, asked sql.NullString
	err = tx.QueryRowContext(ctx, "SELECT pending, asked FROM conversation WHERE id = ?", id).Scan(&pending, &asked)
	if errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, f := range []struct {
		json sql.NullString
		into any
	}{{pending, &c.Pending}, {asked, &c.Asked}} {
		if f.json.Valid {
			if err := json.Unmarshal([]byte(f.json.String), f.into); err != nil {
				return nil, false, fmt.Errorf("conversation %q: %w", id, err)
			}
		}
	}
	rows, err := tx.QueryContext(ctx, "SELECT body FROM turn WHERE conversation = ? ORDER BY number", id)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var body sql.RawBytes
		var t conversation.Turn
		if err := rows.Scan(&body); err != nil {
			return nil, false, err
		}
		if err := json.Unmarshal(body, &t); err != nil {
			return nil, false, fmt.Errorf("turn %d of conversation %q: %w", len(c.Turns)+1, id, err)
		}
		c.Turns = append(c.Turns, t)
	}
	return c, true, rows.Err()
}

// List implements conversation.Store.
func (s *Store) List(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id FROM conversation ORDER BY changed DESC")
	if err != nil {
		return nil, s.explain("listing", err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, s.explain("listing", err)
		}
		ids = append(ids, id)
	}
	return ids, s.explain("listing", rows.Err())
}

// Delete implements conversation.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "DELETE FROM conversation WHERE id = ?", id)
		if err != nil {
			return err
		}
		if n, err = r.RowsAffected(); err != nil || n == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM claim WHERE conversation = ?", id) // a running turn is lost
		return err
	})
	if err != nil {
		return s.explain("deleting from", err)
	}
	if n == 0 {
		return fmt.Errorf("conversation %q: %w", id, conversation.ErrNotFound)
	}
	return nil
}

// Close implements conversation.Store. Claims that are still held run out.
func (s *Store) Close() error {
	s.cancel()
	s.renews.Wait()
	return s.explain("closing", s.db.Close())
}
