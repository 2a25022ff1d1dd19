package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
)

// faulty opens a store behind a proxy whose faults can be set.
func faulty(t *testing.T, o qdrant.Options) (s *qdrant.Store, proxy *qdranttest.Proxy, set func(func(method string, n int) qdranttest.Fault)) {
	t.Helper()
	var mu sync.Mutex
	var fault func(method string, n int) qdranttest.Fault
	calls := make(map[string]int)
	proxy = qdranttest.StartProxy(t, qdranttest.Shared(t), qdranttest.ProxyOptions{Fault: func(method string, _ int) qdranttest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if fault == nil {
			return qdranttest.Fault{}
		}
		n := calls[method]
		calls[method]++
		return fault(method, n)
	}})
	o.Addr = proxy.Addr
	s = open(t, o)
	return s, proxy, func(f func(string, int) qdranttest.Fault) {
		mu.Lock()
		defer mu.Unlock()
		fault = f
		clear(calls)
	}
}

// A fault that passes is waited out, whatever the call, whether or not it was
// done before its reply was lost; nothing is lost and nothing doubled.
func TestPassingFaults(t *testing.T) {
	for _, fault := range []struct {
		name string
		qdranttest.Fault
	}{
		{"unavailable", qdranttest.Fault{Code: codes.Unavailable}},
		{"unavailable, the reply lost", qdranttest.Fault{Code: codes.Unavailable, Done: true}},
		{"resource exhausted", qdranttest.Fault{Code: codes.ResourceExhausted}},
		{"deadline", qdranttest.Fault{Code: codes.DeadlineExceeded, Done: true}},
		{"aborted", qdranttest.Fault{Code: codes.Aborted}},
		{"slow", qdranttest.Fault{Delay: 700 * time.Millisecond}}, // longer than an attempt may take
		{"reset", qdranttest.Fault{Reset: true}},
		{"reset, the reply lost", qdranttest.Fault{Reset: true, Done: true}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			o := qdrant.Options{CallTimeout: 500 * time.Millisecond, BatchBytes: 5000, Parallel: 3}
			s, proxy, set := faulty(t, o)
			put(t, s, document("a.md", "alpha", "beta"), document("old.md", "old"))
			set(func(method string, n int) qdranttest.Fault {
				if n%3 == 0 && method != "HealthCheck" { // the first of each, and others
					return fault.Fault
				}
				return qdranttest.Fault{}
			})
			before := proxy.Calls("Upsert")
			var texts []string
			for i := range 20 {
				texts = append(texts, fmt.Sprintf("passage %d, ERR-%d", i, 5100+i))
			}
			documents := []retrieval.Chunked{document("a.md", "alpha", "gamma"), document("b.md", texts...)}
			if _, err := retrieval.Sync(t.Context(), s, inputs(documents...), retrieval.SyncOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := find(t, s, retrieval.Query{Texts: []string{"what is ERR-5107"}, Limit: 1}); got != "b.md/8" {
				t.Errorf("finds %s", got)
			}
			if known, err := s.KnownIdentifiers(t.Context(), "ERR-5107"); err != nil || len(known) != 1 || !known[0].Known {
				t.Errorf("%v, %v", known, err)
			}
			if proxy.Calls("Upsert")-before < 4 {
				t.Error("nothing was made twice: the test tests nothing")
			}
			set(nil)
			all, err := s.Retrieve(t.Context(), retrieval.Query{Texts: []string{"passage"}, Limit: 100})
			if err != nil || len(all) != 22 {
				t.Errorf("%d passages, %v; want 22", len(all), err)
			}
			deadline := time.Now().Add(20 * time.Second)
			for {
				n, err := s.Len(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if n == 22 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d passages are stored, want 22", n)
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
}

// A fault that does not pass is told at once.
func TestLastingFaults(t *testing.T) {
	for _, test := range []struct {
		code codes.Code
		is   error
	}{
		{codes.Unauthenticated, qdrant.ErrDenied}, {codes.PermissionDenied, qdrant.ErrDenied}, {codes.InvalidArgument, nil},
		{codes.Unimplemented, nil}, {codes.Internal, nil}, {codes.FailedPrecondition, nil},
	} {
		s, proxy, set := faulty(t, qdrant.Options{})
		put(t, s, document("a.md", "alpha"))
		set(func(string, int) qdranttest.Fault { return qdranttest.Fault{Code: test.code} })
		for name, do := range map[string]func() error{
			"Query":  func() error { _, err := s.Retrieve(t.Context(), retrieval.Query{Texts: []string{"alpha"}}); return err },
			"Get":    func() error { return s.Replace(t.Context(), "b.md", "1", document("b.md", "beta").Passages) },
			"Scroll": func() error { _, err := s.Documents(t.Context()); return err },
			"Count":  func() error { _, err := s.Len(t.Context()); return err },
		} {
			before := proxy.Calls(name)
			err := do()
			if err == nil || !strings.Contains(err.Error(), proxy.Addr) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v, %s: error %v", test.code, name, err)
			}
			if n := proxy.Calls(name) - before; n != 1 {
				t.Errorf("%v: %s was called %d times, want once", test.code, name, n)
			}
		}
		set(nil)
	}
}

// A server whose disk is full says so in words alone.
func TestDiskFull(t *testing.T) {
	s, _, set := faulty(t, qdrant.Options{})
	put(t, s, document("a.md", "alpha"))
	set(func(method string, _ int) qdranttest.Fault {
		if method != "Upsert" {
			return qdranttest.Fault{}
		}
		return qdranttest.Fault{Code: codes.Internal, Message: "Service internal error: No space left on device: WAL buffer size exceeds available disk space"}
	})
	err := s.Replace(t.Context(), "b.md", "1", document("b.md", "beta").Passages)
	if !errors.Is(err, retrieval.ErrFull) || !strings.Contains(err.Error(), "the disk of Qdrant at") {
		t.Errorf("error %v", err)
	}
	set(nil)
	put(t, s, document("b.md", "beta"))
}

// Calls are repeated for as long as the options and the context say.
func TestPatience(t *testing.T) {
	s, proxy, set := faulty(t, qdrant.Options{RetryFor: 400 * time.Millisecond})
	put(t, s, document("a.md", "alpha"))
	set(func(string, int) qdranttest.Fault { return qdranttest.Fault{Code: codes.Unavailable} })
	start := time.Now()
	_, err := s.Retrieve(t.Context(), retrieval.Query{Texts: []string{"alpha"}})
	if took := time.Since(start); !errors.Is(err, qdrant.ErrUnavailable) || took < 100*time.Millisecond || took > 5*time.Second || proxy.Calls("Query") < 2 {
		t.Errorf("after %v and %d calls: %v", took, proxy.Calls("Query"), err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if err := s.Replace(ctx, "a.md", "2", document("a.md", "beta").Passages); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("at the context's deadline: %v", err)
	}

	// A server that says when to come again is not asked before.
	set(nil)
	patient := open(t, qdrant.Options{Addr: proxy.Addr})
	put(t, patient, document("a.md", "alpha"))
	set(func(method string, n int) qdranttest.Fault {
		if method == "Query" && n == 0 {
			return qdranttest.Fault{Code: codes.ResourceExhausted, RetryAfter: "1"}
		}
		return qdranttest.Fault{}
	})
	start = time.Now()
	if _, err := patient.Retrieve(t.Context(), retrieval.Query{Texts: []string{"alpha"}}); err != nil || time.Since(start) < time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

// A caller who gives up is let go at once, and leaves nothing running.
func TestCancel(t *testing.T) {
	s, _, set := faulty(t, qdrant.Options{})
	put(t, s, document("a.md", "alpha"))
	set(func(string, int) qdranttest.Fault { return qdranttest.Fault{Delay: time.Minute} })
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		start := time.Now()
		if _, err := s.Retrieve(ctx, retrieval.Query{Texts: []string{"alpha"}}); !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	}
	set(nil)
}

// The server is killed in the middle of ingestion and started again: nothing is
// lost and nothing doubled, whether the client waited or gave up and came again.
func TestServerKilled(t *testing.T) {
	for _, patience := range []time.Duration{time.Minute, -1} {
		t.Run(fmt.Sprint(patience), func(t *testing.T) {
			t.Parallel()
			server := qdranttest.Start(t)
			o := qdrant.Options{Addr: server.Addr, Tenant: "t", RetryFor: patience, BatchBytes: 20_000, ReadyWait: time.Minute}
			s := open(t, o)
			var documents []retrieval.Chunked
			total := 0
			for d := range 60 {
				var texts []string
				for p := range 1 + d%9 {
					texts = append(texts, fmt.Sprintf("document %d passage %d", d, p))
				}
				total += len(texts)
				documents = append(documents, document(fmt.Sprintf("%02d.md", d), texts...))
			}
			done := make(chan error)
			started := make(chan bool)
			go func() {
				var once sync.Once
				_, err := retrieval.Sync(t.Context(), s, inputs(documents...), retrieval.SyncOptions{Batch: 16, Progress: func(retrieval.Progress) { once.Do(func() { close(started) }) }})
				done <- err
			}()
			<-started
			time.Sleep(50 * time.Millisecond)
			server.Kill()
			time.Sleep(100 * time.Millisecond)
			server.Restart(t)
			err := <-done
			if patience > 0 && err != nil {
				t.Fatalf("the client did not wait for the server: %v", err)
			}
			again := open(t, o)
			report, err := retrieval.Sync(t.Context(), again, inputs(documents...), retrieval.SyncOptions{Batch: 16})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("second run: %d unchanged, %d added, %d changed", len(report.Unchanged), len(report.Added), len(report.Changed))
			if n, err := again.Len(t.Context()); n != total || err != nil {
				t.Errorf("%d passages are stored, %v; want %d", n, err, total)
			}
			all, err := again.Retrieve(t.Context(), retrieval.Query{Texts: []string{"document passage"}, Limit: 2 * total})
			if err != nil {
				t.Fatal(err)
			}
			var ids, want []string
			for _, p := range all {
				ids = append(ids, p.ID)
			}
			for _, d := range documents {
				for _, p := range d.Passages {
					want = append(want, p.ID)
				}
			}
			slices.Sort(ids)
			slices.Sort(want)
			if !slices.Equal(ids, want) {
				t.Errorf("%d passages are found, want %d, each once", len(ids), len(want))
			}
		})
	}
}
