package server_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/server"
)

// What works and what does not is told by name; what is not needed does not count.
func TestReadiness(t *testing.T) {
	works := func(context.Context) error { return nil }
	fails := func(context.Context) error { return errors.New("connection refused") }
	over := make(chan struct{})
	defer close(over)
	hangs := func(context.Context) error { <-over; return nil } // and does not listen
	for _, test := range []struct {
		name   string
		checks []server.Check
		status int
		want   server.Readiness
	}{
		{"nothing needed", nil, 200, server.Readiness{Ready: true, Services: []server.Service{}}},
		{"all work", []server.Check{{Name: "Qdrant", Run: works}, {Name: "Ollama", Run: works}}, 200,
			server.Readiness{Ready: true, Services: []server.Service{{Name: "Qdrant", OK: true}, {Name: "Ollama", OK: true}}}},
		{"one does not", []server.Check{{Name: "Qdrant", Run: works}, {Name: "Ollama", Run: fails}}, 503,
			server.Readiness{Services: []server.Service{{Name: "Qdrant", OK: true}, {Name: "Ollama", Error: "connection refused"}}}},
		{"one that is not needed does not", []server.Check{{Name: "Qdrant", Run: works}, {Name: "Ollama", Optional: true, Run: fails}}, 200,
			server.Readiness{Ready: true, Services: []server.Service{{Name: "Qdrant", OK: true}, {Name: "Ollama", Optional: true, Error: "connection refused"}}}},
		{"one does not answer", []server.Check{{Name: "Qdrant", Run: hangs}}, 503,
			server.Readiness{Services: []server.Service{{Name: "Qdrant", Error: "no answer within 2s"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, &writer{}, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.Checks = test.checks })
			var got server.Readiness
			if r := b.get("GET", "/readyz", nil, &got); r.StatusCode != test.status || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s %+v\nwant %d %+v", r.Status, got, test.status, test.want)
			}
			var about server.AboutServer
			b.get("GET", "/api/about", nil, &about)
			if !reflect.DeepEqual(about.Services, test.want.Services) {
				t.Errorf("about: %+v", about.Services)
			}
			var alive server.Health
			if r := b.get("GET", "/healthz", nil, &alive); r.StatusCode != 200 || alive.Status != "ok" {
				t.Errorf("alive: %s %+v", r.Status, alive)
			}
		})
	}
}

// Those who ask often do not load the services.
func TestChecksAreShared(t *testing.T) {
	var runs atomic.Int32
	b := newBench(t, &writer{}, conversation.NewMemory(), func(o *server.Options, _ *http.Server) {
		o.Checks = []server.Check{{Name: "Qdrant", Run: func(context.Context) error { runs.Add(1); return nil }}}
	})
	start := time.Now()
	for range 50 {
		b.get("GET", "/readyz", nil, nil)
	}
	if most := int32(time.Since(start)/time.Second) + 1; runs.Load() > most || runs.Load() == 0 {
		t.Errorf("%d checks, want at most %d", runs.Load(), most)
	}
}

// A turn that fails is told with the service that it failed for: by the error, or
// by what is down now.
func TestFailureNamesService(t *testing.T) {
	gone := errors.New("connection reset by peer")
	for _, test := range []struct {
		name    string
		blame   func(error) string
		check   error
		status  int
		service string
	}{
		{"by the error", func(err error) string {
			if errors.Is(err, gone) {
				return "Ollama"
			}
			return ""
		}, nil, 503, "Ollama"},
		{"by the check", nil, gone, 503, "Qdrant"},
		{"nothing is down", func(error) string { return "" }, nil, 500, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, &writer{err: gone}, conversation.NewMemory(), func(o *server.Options, _ *http.Server) {
				o.Blame = test.blame
				o.Checks = []server.Check{{Name: "Qdrant", Run: func(context.Context) error { return test.check }}}
			})
			var p server.Problem
			r := b.get("POST", "/api/conversations/a/turns", message{"text": "What is the City deposit?"}, &p)
			if r.StatusCode != test.status || p.Service != test.service || !strings.Contains(p.Detail, gone.Error()) || (r.Header.Get("Retry-After") != "") != (test.status == 503) {
				t.Errorf("%s %+v", r.Status, p)
			}
		})
	}
}

// A service that says when to try again is tried then, and one that does not soon.
func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		retry time.Duration
		want  string
	}{{0, "5"}, {time.Millisecond, "1"}, {2 * time.Second, "2"}, {2*time.Second + 1, "3"}} {
		b := newBench(t, &writer{err: &server.ServiceError{Service: "Ollama", Err: errors.New("left alone"), Retry: test.retry}}, conversation.NewMemory(), nil)
		r := b.get("POST", "/api/conversations/a/turns", message{"text": "What is the City deposit?"}, nil)
		if got := r.Header.Get("Retry-After"); r.StatusCode != 503 || got != test.want {
			t.Errorf("to be tried after %v: %s, Retry-After %s, want %s", test.retry, r.Status, got, test.want)
		}
	}
}

// fullStore has no room for what is said.
type fullStore struct {
	conversation.Store
	full error
}

func (s *fullStore) Begin(ctx context.Context, r conversation.Request) (conversation.Claim, error) {
	if s.full != nil {
		return nil, s.full
	}
	return s.Store.Begin(ctx, r)
}

// A disk that is full is a problem of its own, which says so, and the message can be sent
// again with its key once there is room.
func TestDiskFull(t *testing.T) {
	for _, full := range []error{
		fmt.Errorf("conversations in talk.db: %w; free some space", conversation.ErrFull),
		fmt.Errorf("the index: %w; free some space", retrieval.ErrFull),
		&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC},
	} {
		s := &fullStore{conversation.NewMemory(), full}
		b := newBench(t, &writer{pieces: []string{"200"}}, s, nil)
		said := message{"text": "What is the City deposit?", "key": "k"}
		for range 2 {
			var p server.Problem
			r := b.get("POST", "/api/conversations/a/turns", said, &p)
			if r.StatusCode != 507 || p.Code != "full" || p.Detail != full.Error() || r.Header.Get("Retry-After") == "" {
				t.Errorf("%v: %s %+v", full, r.Status, p)
			}
		}
		if !strings.Contains(b.log.String(), "no room left") {
			t.Errorf("log: %s", b.log)
		}
		s.full = nil
		var result server.TurnResult
		if r := b.get("POST", "/api/conversations/a/turns", said, &result); r.StatusCode != 200 || result.Text != "200" {
			t.Errorf("with room again: %s %+v", r.Status, result)
		}
	}
}
