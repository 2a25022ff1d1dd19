package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server"
)

// serving is a server of this process.
type serving struct {
	url  string
	err  bytes.Buffer // standard error, to be read after its end
	stop func() int   // ends it, and gives its exit code
}

// serve starts the program's server, and waits until it is ready.
func serve(t *testing.T, args ...string) *serving {
	t.Helper()
	s := listening(t, args...)
	s.ready(t)
	return s
}

// listening starts the program's server, and waits until it listens.
func listening(t *testing.T, args ...string) *serving {
	t.Helper()
	s := &serving{}
	ctx, cancel := context.WithCancel(t.Context())
	out, told := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"serve"}, args...), streams{strings.NewReader(""), told, &s.err})
		told.Close()
	}()
	s.stop = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() { s.stop() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("exit code %d, %s", s.stop(), &s.err)
	}
	go io.Copy(io.Discard, out)
	s.url = strings.TrimSpace(strings.TrimPrefix(line, "askback serves "))
	return s
}

// ready waits until questions are answered.
func (s *serving) ready(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.Get(s.url + "/readyz")
		if err == nil {
			r.Body.Close()
		}
		if err == nil && r.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not ready after a minute: %v", err)
		}
	}
}

// turn sends a message and gives its result.
func (s *serving) turn(t *testing.T, conversation, body string) (r server.TurnResult) {
	t.Helper()
	resp, err := http.Post(s.url+"/api/conversations/"+conversation+"/turns", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return r
}

// The program serves the sample; ended and started again it goes on where it stood.
func TestServe(t *testing.T) {
	t.Chdir(t.TempDir())
	store := filepath.Join(t.TempDir(), "talk.db")
	s := serve(t, "--addr=127.0.0.1:0", "--store="+store)
	asked := s.turn(t, "a", `{"text": "What is the rental deposit?", "key": "m1"}`)
	if asked.Kind != conversation.KindClarification || len(asked.Options) != 2 {
		t.Fatalf("%+v", asked)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d, %s", code, &s.err)
	}
	s = serve(t, "--addr=127.0.0.1:0", "--store="+store)
	r, err := http.Get(s.url + "/api/conversations/a/turns/m1/events")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || !strings.Contains(string(text), asked.Options[0].Text) || !strings.HasSuffix(string(text), "event: end\ndata: {}\n\n") {
		t.Errorf("%s, %v", text, err)
	}
	answered := s.turn(t, "a", `{"choice": "1", "clarification": "`+asked.Clarification+`"}`)
	if answered.Kind != conversation.KindAnswer || answered.Turn != 2 || len(answered.Citations) == 0 {
		t.Errorf("%+v", answered)
	}
	if code := s.stop(); code != 0 || strings.Contains(s.err.String(), "warning") {
		t.Errorf("exit code %d, %s", code, &s.err)
	}
}

func TestServeAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ addr, says string }{
		{taken.Addr().String(), taken.Addr().String() + " is in use by another program"},
		{"8080", `"8080" is no HOST:PORT`},
		{"127.0.0.1:http:x", "is no HOST:PORT"},
		{"127.0.0.1:99999", "--addr"},
		{"no-such-host.invalid:0", "no-such-host.invalid"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"serve", "--addr=" + c.addr}, streams{strings.NewReader(""), &out, &errs}); code != exitUsage || out.Len() > 0 || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit code %d, %s%s, want %q", c.addr, code, &out, &errs, c.says)
		}
	}
}

// A server on a loopback address answers to its own names alone; one beyond it says
// what that means.
func TestServeNames(t *testing.T) {
	t.Chdir(t.TempDir())
	get := func(url, host string) int {
		t.Helper()
		r, err := http.NewRequest("GET", url+"/api/conversations", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	t.Setenv("ASKBACK_ADDR", "127.0.0.1:0")
	s := serve(t)
	for host, want := range map[string]int{"localhost:8080": 200, "LOCALHOST": 200, "[::1]:80": 200, "127.0.0.1": 200, "evil.example": 421, "127.0.0.1.evil.example:8080": 421, "192.0.2.1": 421} {
		if got := get(s.url, host); got != want {
			t.Errorf("sent to %s: %d, want %d", host, got, want)
		}
	}
	if s, errOut, code := command(t, "", "serve", "--addr=0.0.0.0:0"); code != exitUsage || s != "" || !strings.Contains(errOut, "askback keys create") {
		t.Errorf("beyond this machine without keys: exit code %d, %s", code, errOut)
	}
	s = serve(t, "--addr=0.0.0.0:0", "--open")
	if got := get(s.url, "chat.example"); got != 200 || !strings.HasPrefix(s.url, "http://localhost:") {
		t.Errorf("%s: %d", s.url, got)
	}
	if s.stop(); !strings.Contains(s.err.String(), "beyond this machine") {
		t.Errorf("does not warn: %s", &s.err)
	}
}
