package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/internal/sqlstore"
	"github.com/askback/askback/conversation/storetest"
)

// The tests run on a database of their own on the server of
// ASKBACK_TEST_POSTGRES, and once more through the pooler of ASKBACK_TEST_POOLER
// before it. ./test starts both.
var (
	server = os.Getenv("ASKBACK_TEST_POSTGRES")
	pooler = os.Getenv("ASKBACK_TEST_POOLER")
	name   = fmt.Sprintf("askback_test_%d_%d", os.Getpid(), rand.Uint32())
)

func TestMain(m *testing.M) {
	if storetest.Child(func(ctx context.Context, where string, o storetest.Options) (conversation.Store, error) {
		return Open(ctx, where, Options(o))
	}) {
		return
	}
	code := 0
	if server == "" {
		code = m.Run()
	} else {
		run(server, "CREATE DATABASE "+name)
		code = m.Run()
		run(server, "DROP DATABASE "+name+" WITH (FORCE)")
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run runs a statement on the server.
func run(where, statement string) {
	db, err := sql.Open("pgx", where)
	if err == nil {
		defer db.Close()
		_, err = db.Exec(statement)
	}
	if err != nil {
		panic(err)
	}
}

// places are the ways to the database: directly and through the pooler.
func places(t *testing.T) map[string]string {
	t.Helper()
	if server == "" {
		t.Skip("no PostgreSQL: ./test starts one, or set ASKBACK_TEST_POSTGRES to the URL of a server")
	}
	ways := map[string]string{"direct": in(t, server, name)}
	if pooler != "" {
		ways["pooled"] = in(t, pooler, name)
	}
	return ways
}

// in is the URL of another database on the same server.
func in(t *testing.T, where, database string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil || u.Scheme == "" {
		t.Fatalf("%s is not a URL: %v", where, err)
	}
	u.Path = "/" + database
	return u.String()
}

func open(t *testing.T, where string, o storetest.Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), where, Options(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// empty takes all conversations away.
func empty(t *testing.T, where string) {
	t.Helper()
	if _, err := open(t, where, storetest.Options{}).DB().Exec("DELETE FROM conversation"); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	for way, where := range places(t) {
		t.Run(way, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T, o storetest.Options) conversation.Store {
				empty(t, where)
				return open(t, where, o)
			})
			storetest.RunShared(t, func(t *testing.T) storetest.Place {
				empty(t, where)
				return storetest.Place{
					Open: func(o storetest.Options) conversation.Store { return open(t, where, o) },
					Expire: func() {
						if _, err := open(t, where, storetest.Options{}).DB().Exec("UPDATE conversation SET expires = 0 WHERE claim IS NOT NULL"); err != nil {
							t.Fatal(err)
						}
					},
				}
			})
		})
	}
}

func TestKilled(t *testing.T) {
	for way, where := range places(t) {
		t.Run(way, func(t *testing.T) {
			empty(t, where)
			storetest.Crash(t, where, func(t *testing.T) conversation.Store { return open(t, where, storetest.Options{}) })
		})
	}
}

// Many processes may start on an empty database at once.
func TestOpenedByManyAtOnce(t *testing.T) {
	for way := range places(t) {
		t.Run(way, func(t *testing.T) {
			fresh := name + "_" + way
			run(server, "CREATE DATABASE "+fresh)
			defer run(server, "DROP DATABASE "+fresh+" WITH (FORCE)")
			where := in(t, map[string]string{"direct": server, "pooled": pooler}[way], fresh)
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					s, err := Open(t.Context(), where, Options{})
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					if _, err := storetest.Say(t.Context(), s, fmt.Sprint("c", i), "hello"); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()

			s := open(t, where, storetest.Options{})
			if _, err := s.DB().Exec("INSERT INTO " + versions + " (version_id, is_applied) VALUES (99, true)"); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if _, err := Open(t.Context(), where, Options{}); err == nil || !strings.Contains(err.Error(), "version 99") {
				t.Errorf("tables of a later version: %v", err)
			}
		})
	}
}

// A connection that breaks in the middle of a turn breaks that turn at most.
func TestConnectionsBroken(t *testing.T) {
	for way, where := range places(t) {
		t.Run(way, func(t *testing.T) {
			empty(t, where)
			s := open(t, where, storetest.Options{})
			for i := range 3 {
				claim, err := s.Begin(t.Context(), conversation.Request{Conversation: "x", Text: "hello"})
				if err != nil {
					t.Fatal(err)
				}
				run(server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"' AND pid <> pg_backend_pid()")
				time.Sleep(50 * time.Millisecond)
				c := claim.Conversation()
				c.Turns = append(c.Turns, conversation.Turn{Number: c.Next(), Text: fmt.Sprint("t", i)})
				err = claim.Commit(t.Context(), c)
				if err != nil { // then all of it failed, and it may be tried again
					t.Log(err)
					err = claim.Commit(t.Context(), c)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if c, err := s.Load(t.Context(), "x", conversation.All); err != nil || len(c.Turns) != 3 {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

// An error names the database and never the password.
func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		url, says string
		is        error
	}{
		{"postgres://ada:hunter2@127.0.0.1:1/talk?sslmode=disable", "127.0.0.1:1/talk", ErrUnavailable},
		{"postgres://ada:hunter2@127.0.0.1:port/talk", "write it as postgres://", nil},
		{"postgres://ada:hunter2@127.0.0.1:1/talk?sslmode=perhaps", "write it as postgres://", nil},
	} {
		_, err := Open(t.Context(), tc.url, Options{})
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") || errors.Is(err, ErrUnavailable) != (tc.is != nil) {
			t.Errorf("%s: %v, want an error that says %q and not the password", tc.url, err, tc.says)
		}
	}
}

// What may pass can be told from what will not.
func TestErrorKinds(t *testing.T) {
	said := func(code string) error { return &pgconn.PgError{Severity: "FATAL", Code: code, Message: "said"} }
	for _, tc := range []struct {
		err                 error
		unavailable, denied bool
	}{
		{said("28P01"), false, true}, {said("28000"), false, true},
		{said("57P03"), true, false}, {said("57P01"), true, false}, {said("53300"), true, false}, {said("08006"), true, false},
		{said("3D000"), false, false}, {said("42501"), false, false}, {said("57014"), false, false}, {said("53100"), false, false}, {sqlstore.ErrLate, true, false},
		{driver.ErrBadConn, true, false}, {io.ErrUnexpectedEOF, true, false}, {syscall.ECONNRESET, true, false},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true, false},
		{context.Canceled, false, false}, {context.DeadlineExceeded, false, false}, {errors.New("other"), false, false},
	} {
		err := database{"host:5432/talk"}.explain("opening", fmt.Errorf("x: %w", tc.err))
		if errors.Is(err, ErrUnavailable) != tc.unavailable || errors.Is(err, ErrDenied) != tc.denied || !errors.Is(err, tc.err) || !strings.Contains(err.Error(), "host:5432/talk") {
			t.Errorf("%v: unavailable %t, denied %t", err, errors.Is(err, ErrUnavailable), errors.Is(err, ErrDenied))
		}
		if full := strings.Contains(err.Error(), "disk is full"); errors.Is(err, conversation.ErrFull) != full {
			t.Errorf("%v: full %t", err, !full)
		}
	}
}

// A wrong port is told after about startTime, and one where somebody listens who never
// says anything after about connectTime.
func TestFailsFast(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for where, most := range map[string]time.Duration{"127.0.0.1:1": 4 * startTime, silent.Addr().String(): 3 * connectTime} {
		start := time.Now()
		_, err := Open(t.Context(), "postgres://ada@"+where+"/talk?sslmode=disable", Options{})
		if took := time.Since(start); !errors.Is(err, ErrUnavailable) || took > most {
			t.Errorf("%s: %v after %v, want that it is unavailable within %v", where, err, took, most)
		}
	}
}

// A server that holds all its processes makes a turn fail in a bounded time.
func TestPaused(t *testing.T) {
	if server == "" {
		t.Skip("ASKBACK_TEST_POSTGRES is not set")
	}
	s := open(t, in(t, server, name), storetest.Options{})
	slow := sqlstore.New(s.DB(), sqlstore.Dialect{Rewrite: rewrite, Read: &sql.TxOptions{}, Explain: database{"here"}.explain, Limit: 100 * time.Millisecond}, Options{})
	tx, err := s.DB().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("LOCK TABLE conversation"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := slow.Load(t.Context(), "x", 0); !errors.Is(err, ErrUnavailable) || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := slow.Load(ctx, "x", 0); errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller's own time: %v", err)
	}
}

// A server that is just starting is waited for; one that never comes is an error
// within a bounded time.
func TestWaitsForAStartingServer(t *testing.T) {
	tries := 0
	late := func(ctx context.Context, network, address string) (net.Conn, error) {
		if tries++; tries < 4 {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		client, _ := net.Pipe()
		return client, nil
	}
	conn, err := patient(late)(t.Context(), "tcp", "x")
	if err != nil || tries != 4 {
		t.Fatalf("after %d tries: %v", tries, err)
	}
	conn.Close()
	never := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	if _, err := patient(never)(ctx, "tcp", "x"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error %v, want that it was refused", err)
	}
	other := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.EACCES }
	start := time.Now()
	if _, err := patient(other)(t.Context(), "tcp", "x"); !errors.Is(err, syscall.EACCES) || time.Since(start) > time.Second {
		t.Errorf("error %v after %v, want the denial at once", err, time.Since(start))
	}
}
