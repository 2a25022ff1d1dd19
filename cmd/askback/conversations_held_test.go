package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/sqlite"
)

// sharedBuffer is written by one goroutine and read by another.
type sharedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sharedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sharedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Whoever has to wait for a turn of another process, perhaps a dead one, is told which
// process that is, until when it holds the conversation, and that it is waited for.
func TestWaitsForAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	holder := fmt.Sprintf("process %d on ", os.Getpid())
	begin := func(lease time.Duration) (*sqlite.Store, conversation.Claim) {
		t.Helper()
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		claim, err := s.Begin(t.Context(), conversation.Request{Conversation: "c", Text: "a question on its way"})
		if err != nil {
			t.Fatal(err)
		}
		return s, claim
	}
	show := func() string {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := run(t.Context(), []string{"conversations", "show", "--store", path, "c"}, streams{strings.NewReader(""), &out, &errOut}); code != 0 {
			t.Fatalf("show: %d %s", code, errOut.String())
		}
		return out.String()
	}
	for name, c := range map[string]struct {
		args  []string
		input string
	}{
		"ask":         {[]string{"ask", "What does ERR-5172 mean?"}, ""},
		"chat":        {[]string{"chat"}, "What does ERR-5172 mean?\n"},
		"chat --json": {[]string{"chat", "--json"}, "What does ERR-5172 mean?\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, claim := begin(0)
			var out, errOut sharedBuffer
			code := make(chan int)
			go func() {
				code <- run(t.Context(), append(c.args, "--store", path, "--conversation", "c"), streams{strings.NewReader(c.input), &out, &errOut})
			}()
			said := &errOut
			if name == "chat" { // a person reads it between the turns
				said = &out
			}
			for end := time.Now().Add(time.Minute); !strings.Contains(said.String(), "Waiting: "); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					claim.Release()
					t.Fatalf("exit code %d and no word: %s%s", <-code, out.String(), errOut.String())
				}
			}
			if got := said.String(); !strings.Contains(got, "held by "+holder) || !strings.Contains(got, ", whose claim runs out at ") {
				t.Errorf("says %q", got)
			}
			if got := show(); !strings.Contains(got, "(being answered by "+holder) {
				t.Errorf("shown as %s", got)
			}
			claim.Release()
			if got := <-code; got != exitAnswered || !strings.Contains(out.String(), "speed sensor") {
				t.Errorf("exit code %d, %s%s", got, out.String(), errOut.String())
			}
			s.Close()
		})
	}

	s, _ := begin(time.Millisecond)
	s.Close() // as if it had died
	time.Sleep(20 * time.Millisecond)
	if got := show(); !strings.Contains(got, "> a question on its way\n(broken off: the process that answered it has ended)") {
		t.Errorf("a turn whose process is dead is shown as %s", got)
	}
}
