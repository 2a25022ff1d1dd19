package server_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
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
