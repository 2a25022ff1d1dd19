package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/internal/sqlstore"
)

const (
	application = 0x61736b63 // "askc", SQLite's application_id of a store of conversations
	version     = 3          // of the schema, SQLite's user_version
)

//go:embed schema.sql
var schema string

//go:embed upgrade1.sql
var upgrade1 string

//go:embed upgrade2.sql
var upgrade2 string

// Options for a store. The zero value works.
type Options = sqlstore.Options

// ErrLocked is the kind of error for a file that another process was writing to for too
// long.
var ErrLocked = errors.New("the file of the conversations is locked by another process")

// FileError says that a file cannot be used as a store of conversations.
type FileError struct {
	Path    string
	Problem string // what is wrong, and what to do
	Err     error  // SQLite's own error, if there is one
	Kind    error  // conversation.ErrFull or ErrLocked, which pass; or nil
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

// Is reports whether the error is of that kind.
func (e *FileError) Is(kind error) bool { return e.Kind != nil && kind == e.Kind }

// Store keeps conversations in one SQLite file.
type Store struct {
	*sqlstore.Store
	path string
}

var _ conversation.Store = (*Store)(nil)

// Open opens the store in the file at path, and makes it, readable for its owner
// alone, if there is none. A file that is damaged or something else is a *FileError and stays as it is.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("conversations in %s: %w", path, err)
	}
	// What is said is nobody else's business. If the file cannot be made SQLite
	// says why.
	if f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		f.Close()
	}
	db, err := sql.Open("sqlite", dsn(abs))
	if err != nil {
		return nil, fmt.Errorf("conversations in %s: %w", path, err)
	}
	db.SetMaxOpenConns(4)
	s := &Store{path: path}
	if err := s.prepare(ctx, db); err != nil {
		db.Close()
		return nil, s.explain("opening", err)
	}
	s.Store = sqlstore.New(db, sqlstore.Dialect{
		// The processes that share the file are on one machine and so have one
		// clock, which is finer than SQLite's.
		Rewrite: func(q string) string {
			return strings.ReplaceAll(q, "NOW_US", strconv.FormatInt(now().UnixMicro(), 10))
		},
		Read:    &sql.TxOptions{ReadOnly: true}, // one moment's state, without keeping writers out
		Explain: s.explain,
		Deleted: forget,
	}, o)
	return s, nil
}

// now is the clock of leases, which a test sets.
var now = time.Now

// forget takes deleted text out of the write-ahead log too. If a reader is in
// the way the log is emptied later.
func forget(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// pragmas are set on every connection and read back when the store is opened.
var pragmas = []struct{ name, set, got string }{
	{"busy_timeout", "10000", "10000"},
	{"foreign_keys", "1", "1"},
	{"synchronous", "FULL", "2"},
	{"secure_delete", "1", "1"}, // deleted text is overwritten
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
func (s *Store) prepare(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
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
	known, err := s.known(ctx, conn)
	if err != nil {
		return err
	}
	if mode, err := pragma("journal_mode = WAL"); err != nil {
		return err
	} else if mode != "wal" {
		return fmt.Errorf("SQLite did not take the setting journal_mode = WAL, it is %q; the file's folder may be read-only or on a network drive", mode)
	}
	if known == version {
		return nil
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if known, err = s.known(ctx, tx); err != nil {
		return err
	}
	steps := []string{schema, strings.Replace(upgrade1, "@schema@", schema, 1), upgrade2, ""}[known]
	if known == version { // another process was first
		return nil
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("%s PRAGMA application_id = %d; PRAGMA user_version = %d;", steps, application, version)); err != nil {
		return err
	}
	return tx.Commit()
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// known gives the version of the file's schema, 0 for an empty file. One that is
// neither empty nor a store of a version up to ours is an error.
func (s *Store) known(ctx context.Context, q querier) (schemaVersion int, err error) {
	var app, tables int
	// In one statement, so that a process that makes the tables in this moment is
	// seen before it or after it and not in the middle.
	if err := q.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM sqlite_schema),
		(SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version)`).Scan(&tables, &app, &schemaVersion); err != nil {
		return 0, err
	}
	switch {
	case app == 0 && schemaVersion == 0 && tables == 0:
		return 0, nil
	case app != application:
		return 0, &FileError{Path: s.path, Problem: "this is the database of another program; it was left as it is; give another path"}
	case schemaVersion < 1 || schemaVersion > version:
		return 0, &FileError{Path: s.path, Problem: fmt.Sprintf("the file's schema is version %d and this program knows versions up to %d; it was left as it is; use the program that wrote it, or a newer one", schemaVersion, version)}
	}
	return schemaVersion, nil
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
		full := &FileError{Path: s.path, Problem: "the disk is full; nothing was stored; free some space and try again", Err: err, Kind: conversation.ErrFull}
		if se.Code() == sqlite3.SQLITE_IOERR_SHMSIZE { // of the file of shared memory beside the database
			return full
		}
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return full
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return &FileError{Path: s.path, Problem: "another process has been writing to it for more than 10 seconds; nothing was stored; try again when it is done", Err: err, Kind: ErrLocked}
		case sqlite3.SQLITE_NOTADB:
			return &FileError{Path: s.path, Problem: "this is not a SQLite database, or its beginning is damaged; it was left as it is; give another path, or restore it from a copy", Err: err}
		case sqlite3.SQLITE_CORRUPT:
			return &FileError{Path: s.path, Problem: "the database is damaged; it was left as it is; restore it from a copy, or read what can be saved with sqlite3's .recover", Err: err}
		case sqlite3.SQLITE_CANTOPEN:
			return &FileError{Path: s.path, Problem: "the file cannot be opened; see that its folder exists and can be written to", Err: err}
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
			return &FileError{Path: s.path, Problem: "the file cannot be written to; see its permissions", Err: err}
		}
	}
	return fmt.Errorf("%s conversations in %s: %w", doing, s.path, err)
}
