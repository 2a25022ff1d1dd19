package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/internal/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	versions      = "askback_migrations"      // the table of the migrations that ran
	migrationLock = int64(0x61736b6261636b00) // "askback": who holds it migrates
	connections   = 10                        // at most, of one process
)

var (
	// ErrUnavailable is wrapped by errors that may pass: the server cannot be
	// reached, is starting or ending, or takes no more connections.
	ErrUnavailable = errors.New("the PostgreSQL server cannot be reached")
	// ErrDenied is wrapped by the error for a user or a password that the server
	// does not take.
	ErrDenied = errors.New("the PostgreSQL server denies access")
)

// Options for a store. The zero value works.
type Options = sqlstore.Options

// Store keeps conversations in a PostgreSQL database.
type Store struct{ *sqlstore.Store }

var _ conversation.Store = (*Store)(nil)

// Open connects to the database that the URL, or the list of key=value, names,
// and brings its tables up to date.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("conversations in PostgreSQL: %w; write it as postgres://user:password@host:5432/database", err)
	}
	// Statements go without a name and without a round of their own, which a
	// pooler of transactions demands.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.DialFunc = patient(config.DialFunc)
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTime
	}
	d := database{fmt.Sprintf("%s/%s", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database)}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	if err := migrate(ctx, db); err != nil {
		db.Close()
		return nil, d.explain("opening", err)
	}
	return &Store{sqlstore.New(db, sqlstore.Dialect{
		Rewrite: rewrite,
		Read:    &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
		Again:   again,
		Limit:   answerTime,
		Explain: d.explain,
	}, o)}, nil
}

const (
	// startTime is how long a connection waits for a server, or a pooler, that
	// refuses it because it is just starting.
	startTime = time.Second
	// connectTime is how long a connection may take, unless the URL has
	// connect_timeout: somebody waits for it.
	connectTime = 3 * time.Second
	// answerTime is how long the server may take for one transaction of a turn. Each is
	// a few rows.
	answerTime = 15 * time.Second
)

// patient dials again while nobody listens, for at most startTime.
func patient(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for end := time.Now().Add(startTime); ; {
			conn, err := dial(ctx, network, address)
			if !(errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)) || time.Now().After(end) {
				return conn, err
			}
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

var rewrite = strings.NewReplacer("?", "$", "NOW_US", "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Replace

// again reports whether the transaction lost against another one and may win
// when it is tried again.
func again(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01") // serialization failure, deadlock
}

// migrate brings the tables up to date.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versions), goose.WithLocker(&locker{}))
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	have, know, err := p.GetVersions(ctx)
	if err == nil && have > know {
		err = fmt.Errorf("its tables are of version %d and this program knows version %d; use the program that made them, or a newer one", have, know)
	}
	return err
}

// locker lets one process at a time migrate. Its lock belongs to a transaction,
// which a pooler keeps on one connection.
type locker struct{ tx *sql.Tx }

var _ lock.Locker = (*locker)(nil)

func (l *locker) Lock(ctx context.Context, db *sql.DB) (err error) {
	l.tx, err = db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := l.tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", migrationLock); err != nil {
		return errors.Join(err, l.tx.Rollback())
	}
	return nil
}

func (l *locker) Unlock(context.Context, *sql.DB) error { return l.tx.Rollback() }

const diskFull = "53100"

// database names the database in errors, without a password.
type database struct{ name string }

// explain says which database an error comes from. Context errors stay what they
// are.
func (d database) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	var connect *pgconn.ConnectError
	var e *pgconn.PgError
	switch {
	case errors.As(err, &e) && (e.Code == "42501"): // insufficient privilege
		hint = "; the user needs the right to make tables once, and to read and write them"
	case errors.As(err, &e) && e.Code == diskFull:
		hint = "; the server's disk is full; nothing was stored; free some space there and try again"
	case errors.As(err, &connect) && !errors.As(err, &e):
		hint = "; see that the server runs and can be reached"
	}
	said := fmt.Errorf("%s conversations in PostgreSQL at %s: %w%s", doing, d.name, err, hint)
	switch {
	case e != nil && strings.HasPrefix(e.Code, "28"): // invalid authorization
		return kind{said, ErrDenied}
	case e != nil && e.Code == diskFull:
		return kind{said, conversation.ErrFull}
	case passes(err):
		return kind{said, ErrUnavailable}
	}
	return said
}

// passes reports whether an error is the server's absence, which may pass.
func passes(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		// Connections, operator intervention (but 57014, a cancelled query), too many connections.
		return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P") || e.Code == "53300"
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.Is(err, sqlstore.ErrLate) || errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// kind is an error of a kind that its words need not repeat.
type kind struct {
	error
	is error
}

func (k kind) Unwrap() error        { return k.error }
func (k kind) Is(target error) bool { return target == k.is }
