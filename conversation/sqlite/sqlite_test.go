package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/storetest"
)

func TestMain(m *testing.M) {
	if storetest.Child(func(ctx context.Context, path string, o storetest.Options) (conversation.Store, error) {
		return Open(ctx, path, Options(o))
	}) {
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, o storetest.Options) conversation.Store {
		return open(t, filepath.Join(t.TempDir(), "c.db"), Options(o))
	})
}

// Two stores on one file are as two processes are: they share nothing else.
func TestShared(t *testing.T) {
	storetest.RunShared(t, func(t *testing.T) storetest.Place {
		path := filepath.Join(t.TempDir(), "c.db")
		return storetest.Place{
			Open: func(o storetest.Options) conversation.Store { return open(t, path, Options(o)) },
			Expire: func() {
				if _, err := open(t, path, Options{}).DB().Exec("UPDATE conversation SET expires = 0 WHERE claim IS NOT NULL"); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	storetest.Crash(t, path, func(t *testing.T) conversation.Store {
		s := open(t, path, Options{})
		t.Cleanup(func() {
			var verdict string
			if err := s.DB().QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
				t.Errorf("integrity: %s %v", verdict, err)
			}
		})
		return s
	})
}

// Deleted text leaves the file, and the log beside it.
func TestDeletedTextIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	s := open(t, path, Options{})
	secret := "the secret of ada"
	for range 20 {
		if _, err := storetest.Say(t.Context(), s, secret, strings.Repeat(secret, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storetest.Say(t.Context(), s, "other", "stays here"); err != nil {
		t.Fatal(err)
	}
	holds := func(text string) (found bool) {
		for _, p := range []string{path, path + "-wal"} {
			data, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(data, []byte(text))
		}
		return found
	}
	if !holds(secret) {
		t.Fatal("the test looks in the wrong place")
	}
	if _, err := s.Delete(t.Context(), conversation.Filter{ID: secret}); err != nil {
		t.Fatal(err)
	}
	if holds(secret) || !holds("stays here") {
		t.Error("deleted text is still in the file")
	}
}

// made gives the path of a new file that a script has filled.
func made(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(script)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file of the first version of the schema is brought up to date.
func TestUpgrade(t *testing.T) {
	path := made(t, "testdata/version1.sql")
	s := open(t, path, Options{})
	c, err := s.Load(t.Context(), "a", conversation.All)
	if err != nil || len(c.Turns) != 2 || c.Turns[1].Reply != "Which bike?" || string(c.Turns[0].Detail) != `{"score":0.50,"text":"a\u0000<b"}` || c.Pending == nil || c.Pending.ID != "c2" {
		t.Fatalf("%+v, %v", c, err)
	}
	if len(c.Asked) != 2 || c.Asked[0].ID != "c1" || c.Asked[0].Options[1].Text != "City 2" || c.Asked[1].ID != "c2" {
		t.Errorf("clarifications %+v", c.Asked)
	}
	if c, err := s.Load(t.Context(), "b", conversation.All); err != nil || len(c.Turns) != 1 || c.Pending != nil || c.Asked != nil {
		t.Errorf("%+v, %v", c, err)
	}
	var order string
	for i, err := range s.List(t.Context(), conversation.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		order += i.ID
	}
	if order != "ba" {
		t.Errorf("listed %s, want the last changed first", order)
	}
	for _, id := range []string{"a", "b", "c"} {
		if _, err := storetest.Say(t.Context(), s, id, "and then?"); err != nil {
			t.Error(err)
		}
	}
}

// A file of the version before titles gets them.
func TestUpgradeTitles(t *testing.T) {
	path := made(t, "testdata/version2.sql")
	s := open(t, path, Options{})
	if c, err := s.Load(t.Context(), "a", 1); err != nil || c.Title != "How long does it take?" || c.Earlier != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := s.Rename(t.Context(), "a", "Charging"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := open(t, path, Options{}).Load(t.Context(), "a", 1); err != nil || c.Title != "Charging" || c.Turns[0].Reply != "6 hours" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a folder & 50% #1?", "c.db")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, Options{})
	if _, err := storetest.Say(t.Context(), s, "a", "one"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v; want a file for its owner alone", info.Mode(), err)
	}
	c, err := open(t, path, Options{}).Load(t.Context(), "a", conversation.All)
	if err != nil || len(c.Turns) != 1 || c.Turns[0].Text != "one" {
		t.Fatalf("reopened: %+v, %v", c, err)
	}
}

func TestNotOurs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	database := func(name string, statements ...string) string {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	whole := filepath.Join(dir, "whole.db")
	s := open(t, whole, Options{})
	for range 30 {
		if _, err := storetest.Say(t.Context(), s, "a", strings.Repeat("long ", 500)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	bytesOf, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, says string }{
		"text":          {write("notes.txt", strings.Repeat("These are my notes.\n", 100)), "not a SQLite database"},
		"other program": {database("other.db", "CREATE TABLE t (x)"), "another program"},
		"newer":         {database("newer.db", "CREATE TABLE t (x)", fmt.Sprint("PRAGMA application_id = ", application), "PRAGMA user_version = 99"), "version 99"},
		"header broken": {write("header.db", "\x00\x00\x00"+string(bytesOf[3:])), "not a SQLite database"},
		"cut":           {write("cut.db", string(bytesOf[:len(bytesOf)/2])), "damaged"},
		"page broken":   {write("page.db", string(bytesOf[:4096])+strings.Repeat("\xaa", 3*4096)+string(bytesOf[4*4096:])), "damaged"},
		"no folder":     {filepath.Join(dir, "no", "such", "c.db"), "cannot be opened"},
		"a folder":      {dir, "cannot be opened"},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := os.ReadFile(c.path)
			s, err := Open(t.Context(), c.path, Options{Wait: time.Second})
			if err == nil {
				_, err = s.Load(t.Context(), "a", conversation.All)
				s.Close()
			}
			var file *FileError
			if !errors.As(err, &file) || file.Path != c.path || !strings.Contains(err.Error(), c.path) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want a FileError that names %s and says %q", err, c.path, c.says)
			}
			if after, _ := os.ReadFile(c.path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// A disk that is full is told as such, nothing is stored of a turn that finds no room, and
// the same turn goes on once there is room.
func TestDiskFull(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "c.db"), Options{})
	s.DB().SetMaxOpenConns(1) // the limit is one of a connection
	limit := func(pages string) {
		t.Helper()
		if _, err := s.DB().Exec("PRAGMA max_page_count = " + pages); err != nil {
			t.Fatal(err)
		}
	}
	isFull := func(doing string, err error) {
		t.Helper()
		if !errors.Is(err, conversation.ErrFull) || !strings.Contains(err.Error(), "c.db: the disk is full") {
			t.Errorf("%s: %v", doing, err)
		}
	}
	long := strings.Repeat("long ", 20_000)
	limit("1") // as many as there are
	_, err := s.Begin(t.Context(), conversation.Request{Conversation: "x", Key: "k", Text: long})
	isFull("a question", err)
	if _, err := s.Load(t.Context(), "x", 0); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("after a question without room: %v", err)
	}
	claim, err := s.Begin(t.Context(), conversation.Request{Conversation: "x", Key: "k", Text: "short"})
	if err != nil {
		t.Fatal(err)
	}
	next := claim.Conversation()
	next.Turns = append(next.Turns, conversation.Turn{Number: 1, Key: "k", Kind: conversation.KindAnswer, Text: "short", Reply: long})
	isFull("an answer", claim.Commit(t.Context(), next))
	if c, err := s.Load(t.Context(), "x", 0); err != nil || len(c.Turns) != 0 || c.Open == nil || c.Open.Text != "short" {
		t.Errorf("after an answer without room: %+v, %v", c, err)
	}
	limit("1000000")
	if err := claim.Commit(t.Context(), next); err != nil {
		t.Error(err)
	}
	if c, err := s.Load(t.Context(), "x", 0); err != nil || len(c.Turns) != 1 || c.Turns[0].Reply != long {
		t.Errorf("with room again: %+v, %v", c, err)
	}
	if errors.Is(&FileError{Path: "x", Problem: "is damaged"}, conversation.ErrFull) {
		t.Error("a file that is damaged is said to be full")
	}
}
