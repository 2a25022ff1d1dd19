package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
	"github.com/askback/askback/retrieval/retrievertest"
	"github.com/askback/askback/server"
)

// call makes a request, and reads the JSON that comes back.
func (s *serving) call(t *testing.T, method, path, body string, into any) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s %s: %s %q: %v", method, path, resp.Status, text, err)
	}
	return resp.StatusCode
}

// down gives the services that the server says are down.
func (s *serving) down(t *testing.T) (names []string) {
	t.Helper()
	var r server.Readiness
	status := s.call(t, "GET", "/readyz", "", &r)
	for _, k := range r.Services {
		if !k.OK {
			names = append(names, k.Name)
		}
	}
	if r.Ready != (status == http.StatusOK) {
		t.Errorf("ready %t with status %d", r.Ready, status)
	}
	return names
}

// until waits until exactly these services are down.
func (s *serving) until(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got = s.down(t); slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("down are %q, want %q", got, want)
}

// refuses sends a message and wants to be told that a service is down.
func (s *serving) refuses(t *testing.T, method, path, body, service string) {
	t.Helper()
	var p server.Problem
	start := time.Now()
	if status := s.call(t, method, path, body, &p); status != http.StatusServiceUnavailable || p.Service != service || p.Detail == "" {
		t.Errorf("%s %s: %d %+v, want that %s is down", method, path, status, p, service)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("%s %s: that %s is down was said after %v", method, path, service, took)
	}
}

const (
	asksCode = `{"text": "What does ERR-5172 mean?"}`
	turnsOfA = "/api/conversations/a/turns"
)

// Qdrant is not there at first, comes, goes and comes back: the server is alive all
// the time, says what is missing, and goes on by itself.
func TestServeWithoutQdrant(t *testing.T) {
	t.Chdir(t.TempDir())
	engine := qdranttest.Start(t)
	t.Setenv("QDRANT_ADDR", engine.Addr)
	t.Setenv("QDRANT_COLLECTION", "serve")
	engine.Kill()
	s := listening(t, "--addr=127.0.0.1:0", "--sample", "--gate-timeout="+slow)
	s.until(t, "Qdrant")
	var health server.Health
	if s.call(t, "GET", "/healthz", "", &health) != http.StatusOK || health.Status != "ok" {
		t.Errorf("alive: %+v", health)
	}
	s.refuses(t, "POST", turnsOfA, asksCode, "Qdrant")
	s.refuses(t, "GET", "/api/documents", "", "Qdrant")
	var about server.AboutServer
	if s.call(t, "GET", "/api/about", "", &about) != http.StatusOK || !strings.Contains(about.Sources, engine.Addr) {
		t.Errorf("about: %+v", about)
	}

	engine.Restart(t)
	s.until(t)
	if r := s.turn(t, "a", asksCode); r.Kind != conversation.KindAnswer {
		t.Errorf("%+v", r)
	}
	if status := s.call(t, "PUT", "/api/documents/frob.md", "# Frob\n\nThe frobnicator has 12 teeth.", nil); status != http.StatusOK {
		t.Errorf("upload: %d", status)
	}

	engine.Kill()
	s.until(t, "Qdrant")
	s.refuses(t, "POST", turnsOfA, `{"text": "What does ERR-5171 mean?", "key": "kept"}`, "Qdrant")
	s.refuses(t, "PUT", "/api/documents/other.md", "text", "Qdrant")
	var view server.ConversationView
	if s.call(t, "GET", "/api/conversations/a", "", &view) != http.StatusOK || len(view.Turns) != 1 {
		t.Errorf("the conversation cannot be read: %+v", view)
	}

	engine.Restart(t)
	s.until(t)
	if r := s.turn(t, "a", `{"text": "What does ERR-5171 mean?", "key": "kept"}`); r.Kind != conversation.KindAnswer || r.Turn != 2 {
		t.Errorf("the same message again: %+v", r)
	}
	if r := s.turn(t, "b", `{"text": "How many teeth has the frobnicator?"}`); r.Kind != conversation.KindAnswer || !strings.Contains(r.Text, "12 teeth") {
		t.Errorf("of the uploaded document: %+v", r)
	}
	if code := s.stop(); code != exitAnswered {
		t.Errorf("exit code %d, %s", code, &s.err)
	}
}

// What the user has to put right ends the program at once, and says what it is.
func TestServeFailsFast(t *testing.T) {
	engine := qdranttest.Start(t)
	secret := qdranttest.StartProxy(t, engine.Addr, qdranttest.ProxyOptions{APIKey: "right"})
	other, err := qdrant.Open(t.Context(), qdrant.Options{Addr: engine.Addr, Collection: "other", Embedder: new(retrievertest.Embedder), Identity: "another embedder"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Replace(t.Context(), "a.md", "1", []retrieval.Passage{{ID: "1", Document: "a.md", Text: "alpha"}}); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, test := range []struct {
		name string
		env  map[string]string
		args []string
		code int
		says string
	}{
		{"refused key", map[string]string{"QDRANT_ADDR": secret.Addr, "QDRANT_API_KEY": "wrong"}, nil, exitFailed, "denies access"},
		{"another embedder", map[string]string{"QDRANT_ADDR": engine.Addr, "QDRANT_COLLECTION": "other"}, nil, exitFailed, "made in another way"},
		{"plain text key", map[string]string{"QDRANT_ADDR": "qdrant.example:6334", "QDRANT_API_KEY": "key"}, nil, exitUsage, "QDRANT_TLS"},
		{"no address", map[string]string{"QDRANT_ADDR": "http://localhost"}, nil, exitFailed, "is not host:port"},
		{"empty folder", nil, []string{"--docs=" + empty}, exitUsage, "no readable file"},
		{"no folder", nil, []string{"--docs=" + filepath.Join(empty, "none")}, exitUsage, "it does not exist\n"},
		{"rebuild alone", nil, []string{"--rebuild", "--index=x.db"}, exitUsage, "--docs"},
		{"no store", nil, []string{"--store=redis://localhost"}, exitUsage, "redis:// is not known"},
		{"wrong database", nil, []string{"--store=postgres://ada@127.0.0.1:port/talk"}, exitFailed, "write it as postgres://"},
		{"wrong host of Ollama", map[string]string{"OLLAMA_HOST": "ftp://x"}, []string{"--chat-model=fake"}, exitUsage, "OLLAMA_HOST"},
		{"wrong threshold", nil, []string{"--pre-threshold=70"}, exitUsage, "--pre-threshold is 70"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			var out, errs bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			code := run(ctx, append([]string{"serve", "--addr=127.0.0.1:0"}, test.args...), streams{strings.NewReader(""), &out, &errs})
			if code != test.code || !strings.Contains(errs.String(), test.says) {
				t.Errorf("exit code %d, %s; want %d, %q", code, &errs, test.code, test.says)
			}
			if ctx.Err() != nil {
				t.Error("it did not end by itself")
			}
			if test.name == "no folder" && out.Len() > 0 {
				t.Errorf("it served before it looked for the folder: %s", &out)
			}
			if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
				t.Errorf("left behind: %v, %v", files, err)
			}
		})
	}
	t.Run("wrong user", func(t *testing.T) {
		where := os.Getenv("ASKBACK_TEST_POSTGRES")
		if where == "" || !strings.Contains(where, "postgres://askback@") {
			t.Skip("no PostgreSQL of the tests: ./test starts one")
		}
		t.Chdir(t.TempDir())
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		code := run(ctx, []string{"serve", "--addr=127.0.0.1:0", "--store=" + strings.Replace(where, "askback@", "nobody_of_that_name@", 1)}, streams{strings.NewReader(""), &out, &errs})
		if code != exitFailed || !strings.Contains(errs.String(), "nobody_of_that_name") {
			t.Errorf("exit code %d, %s", code, &errs)
		}
	})
}

// Without its store the server is alive and says so.
func TestServeWithoutPostgres(t *testing.T) {
	t.Chdir(t.TempDir())
	s := listening(t, "--addr=127.0.0.1:0", "--store=postgres://ada:hunter2@127.0.0.1:1/talk?sslmode=disable")
	s.until(t, "PostgreSQL")
	s.refuses(t, "GET", "/api/conversations", "", "PostgreSQL")
	s.refuses(t, "POST", turnsOfA, asksCode, "PostgreSQL")
	if code := s.stop(); code != exitAnswered || strings.Contains(s.err.String(), "hunter2") || strings.Count(s.err.String(), "not ready") != 1 {
		t.Errorf("exit code %d, %s", code, &s.err)
	}
}

// A model server that goes away is named; the conversation stays readable.
func TestServeWithoutOllama(t *testing.T) {
	t.Chdir(t.TempDir())
	fake := ollamatest.NewFake(t, ollamatest.Turn{Pieces: []string{"ANSWER: no signal [1]."}})
	t.Setenv("OLLAMA_HOST", fake.URL)
	t.Setenv("ASKBACK_CHAT_MODEL", "fake")
	s := serve(t, "--addr=127.0.0.1:0", "--gate-timeout="+slow)
	if r := s.turn(t, "a", asksCode); r.Kind != conversation.KindAnswer || r.Text != "no signal [1]." {
		t.Errorf("%+v", r)
	}
	fake.Close()
	http.DefaultClient.CloseIdleConnections()
	s.until(t, "Ollama")
	s.refuses(t, "POST", turnsOfA, `{"text": "What does ERR-5171 mean?"}`, "Ollama")
	var view server.ConversationView
	if s.call(t, "GET", "/api/conversations/a", "", &view) != http.StatusOK || len(view.Turns) != 1 {
		t.Errorf("the conversation cannot be read: %+v", view)
	}
	fake.Restart(t)
	s.until(t)
	if r := s.turn(t, "a", `{"text": "What does ERR-5171 mean?"}`); r.Kind != conversation.KindAnswer || r.Turn != 2 {
		t.Errorf("%+v", r)
	}
}

// What is uploaded beside a folder stays in its index, and the folder's own files
// are changed in the folder.
func TestServeFolder(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	t.Chdir(work)
	if err := os.WriteFile(filepath.Join(dir, "leave.md"), []byte("# Leave\n\nEmployees have 28 days."), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--addr=127.0.0.1:0", "--docs=" + dir, "--index=" + filepath.Join(work, "x.db")}
	for start := range 2 {
		s := serve(t, args...)
		if start == 0 {
			if status := s.call(t, "PUT", "/api/documents/frob.md", "# Frob\n\nThe frobnicator has 12 teeth.", nil); status != http.StatusOK {
				t.Errorf("upload: %d", status)
			}
			for method, body := range map[string]string{"PUT": "text", "DELETE": ""} {
				var p server.Problem
				if status := s.call(t, method, "/api/documents/leave.md", body, &p); status != http.StatusConflict || !strings.Contains(p.Detail, dir) {
					t.Errorf("%s of the folder's file: %d %+v", method, status, p)
				}
			}
		}
		var list []server.Document
		s.call(t, "GET", "/api/documents", "", &list)
		if len(list) != 2 || list[0].ID != "frob.md" || !list[0].Uploaded || !list[0].Removable || list[1].ID != "leave.md" || list[1].Removable {
			t.Errorf("start %d: %+v", start, list)
		}
		if code := s.stop(); code != exitAnswered {
			t.Errorf("exit code %d, %s", code, &s.err)
		}
	}
}
