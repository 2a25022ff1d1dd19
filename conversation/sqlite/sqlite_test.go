package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/storetest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("SQLITE_TEST_CHILD"); path != "" {
		child(path)
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
	storetest.Run(t, func(t *testing.T, wait time.Duration) conversation.Store {
		return open(t, filepath.Join(t.TempDir(), "c.db"), Options{Wait: wait})
	})
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
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	c, err := open(t, path, Options{}).Load(t.Context(), "a")
	if err != nil || len(c.Turns) != 1 || c.Turns[0].Text != "one" {
		t.Fatalf("reopened: %+v, %v", c, err)
	}
}

// Two stores on one file are as two processes are: they share nothing else.
func TestSharedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	a, b := open(t, path, Options{}), open(t, path, Options{Wait: 50 * time.Millisecond})
	claim, err := a.Begin(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Begin(t.Context(), "x"); !errors.Is(err, conversation.ErrBusy) {
		t.Fatalf("claimed in both: %v", err)
	}
	claim.Release()
	if _, err := storetest.Say(t.Context(), b, "x", "hello"); err != nil {
		t.Fatal(err)
	}
	c, err := a.Load(t.Context(), "x")
	if err != nil || len(c.Turns) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	a, b := open(t, path, Options{Lease: 150 * time.Millisecond}), open(t, path, Options{Wait: 400 * time.Millisecond})
	claim, err := a.Begin(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Begin(t.Context(), "x"); !errors.Is(err, conversation.ErrBusy) {
		t.Fatalf("a claim whose holder lives ran out: %v", err)
	}
	if err := a.Close(); err != nil { // as if it had died
		t.Fatal(err)
	}
	if _, err := storetest.Say(t.Context(), b, "x", "hello"); err != nil {
		t.Fatalf("a claim whose holder died did not run out: %v", err)
	}
	_ = claim
}

func TestLostToAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	a, b := open(t, path, Options{}), open(t, path, Options{})
	claim, err := a.Begin(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	// The holder was stopped for longer than its lease.
	if _, err := b.db.Exec("UPDATE claim SET expires = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.Say(t.Context(), b, "x", "b's"); err != nil {
		t.Fatal(err)
	}
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 1, Text: "a's"})
	if err := claim.Commit(t.Context(), c); !errors.Is(err, conversation.ErrLost) {
		t.Fatalf("commit of a lost claim: %v, want ErrLost", err)
	}
}

// A claim never ends another's, which a late Release could do.
func TestReleaseOfALostClaim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	a, b := open(t, path, Options{}), open(t, path, Options{})
	old, err := a.Begin(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.Exec("UPDATE claim SET expires = 0"); err != nil {
		t.Fatal(err)
	}
	claim, err := b.Begin(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	old.Release()
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 1, Text: "b's"})
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
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
				_, err = s.Load(t.Context(), "a")
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

// child says things in conversation "x" until it is killed, and writes each to
// standard output when the store has acknowledged it.
func child(path string) {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{Lease: 200 * time.Millisecond})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for i := 0; ; i++ {
		text := fmt.Sprintf("%d.%d", os.Getpid(), i)
		if _, err := storetest.Say(ctx, s, "x", text); err != nil {
			fmt.Println("error", err)
			return
		}
		os.Stdout.WriteString(text + "\n")
	}
}

// TestKilled kills processes at random moments. What a process saw acknowledged
// is there, once, and the turns are numbered without a gap.
func TestKilled(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "c.db")
	said := map[string]bool{}
	for round := range rounds {
		var out bytes.Buffer
		first := make(chan bool, 1)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SQLITE_TEST_CHILD="+path)
		cmd.Stdout = writerFunc(func(p []byte) (int, error) {
			select {
			case first <- true:
			default:
			}
			return out.Write(p)
		})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Every other process is let live until it has said something, however
		// slow the machine is; the rest may die while they open the file.
		if round%2 == 0 {
			select {
			case <-first:
			case <-time.After(time.Minute):
				t.Fatal("a process said nothing for a minute")
			}
		}
		time.Sleep(time.Duration(20+random.IntN(180)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if i := strings.Index(out.String(), "error"); i >= 0 {
			t.Fatal(out.String()[i:])
		}
		for line := range strings.Lines(out.String()) {
			if text, whole := strings.CutSuffix(line, "\n"); whole {
				said[text] = true
			}
		}
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, said)
		s.Close()
	}
	t.Logf("%d turns acknowledged over %d kills", len(said), rounds)
	if len(said) < rounds/2 {
		t.Errorf("only %d turns were acknowledged: the test tests little", len(said))
	}
	// And the conversation goes on.
	s := open(t, path, Options{Wait: 5 * time.Second})
	if _, err := storetest.Say(t.Context(), s, "x", "still here"); err != nil {
		t.Fatal(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func check(t *testing.T, s *Store, said map[string]bool) {
	t.Helper()
	c, err := s.Load(t.Context(), "x")
	if errors.Is(err, conversation.ErrNotFound) && len(said) == 0 {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, turn := range c.Turns {
		if turn.Number != i+1 || turn.Reply != "re: "+turn.Text {
			t.Fatalf("turn %d of %d is %+v", i+1, len(c.Turns), turn)
		}
		if seen[turn.Text] {
			t.Fatalf("%s stands twice", turn.Text)
		}
		seen[turn.Text] = true
	}
	for text := range said {
		if !seen[text] {
			t.Fatalf("%s was acknowledged and is lost", text)
		}
	}
	var verdict string
	if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity: %s %v", verdict, err)
	}
}
