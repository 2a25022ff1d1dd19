package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
	"github.com/askback/askback/retrieval/retrievertest"
)

// ids gives the ids of all points of a collection.
func ids(t *testing.T, s *qdrant.Store, collection string) []string {
	t.Helper()
	limit := uint32(10_000)
	reply, err := s.Client().Points().Scroll(t.Context(), &api.ScrollPoints{CollectionName: collection, Limit: &limit})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range reply.GetResult() {
		out = append(out, p.GetId().GetUuid())
	}
	slices.Sort(out)
	return out
}

// The same content has the same ids, whoever stores it and however often.
func TestDeterministicIDs(t *testing.T) {
	o := ownCollection(t, qdrant.Options{Tenant: "a"})
	s := open(t, o)
	put(t, s, document("a.md", "alpha", "beta"), document("b.md", "alpha"))
	first := ids(t, s, o.Collection)
	if len(first) != 5 { // three passages, two records
		t.Fatalf("%d points, want 5", len(first))
	}
	again := document("a.md", "alpha", "beta")
	again.Fingerprint = "another" // of the same content
	put(t, open(t, o), again)
	if got := ids(t, s, o.Collection); !slices.Equal(got, first) {
		t.Errorf("storing the same again gives\n%v\nwant\n%v", got, first)
	}
	if err := s.Delete(t.Context(), "a.md", "b.md"); err != nil {
		t.Fatal(err)
	}
	put(t, s, document("b.md", "alpha"), document("a.md", "alpha", "beta"))
	if got := ids(t, s, o.Collection); !slices.Equal(got, first) {
		t.Errorf("storing the same after deleting it gives\n%v\nwant\n%v", got, first)
	}
	if len(first[0]) != 36 || first[0][14] != '8' {
		t.Errorf("%q is no UUID of version 8", first[0])
	}
}

// What a replaced document leaves is deleted after a while, and before Close.
func TestSweep(t *testing.T) {
	o := ownCollection(t, qdrant.Options{})
	s := open(t, o)
	put(t, s, document("a.md", "alpha", "beta", "gamma"))
	put(t, s, document("a.md", "alpha", "delta"))
	if n := points(t, s, o.Collection); n != 1+3+2 {
		t.Errorf("%d points just after the document was replaced, want those of both versions", n)
	}
	for deadline := time.Now().Add(20 * time.Second); points(t, s, o.Collection) != 1+2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d points are left", points(t, s, o.Collection))
		}
	}
	if n := points(t, s, o.Collection, api.NewMatch("stale", "yes")); n != 0 {
		t.Errorf("%d documents are still marked as stale", n)
	}

	// There and back again within the time of grace.
	put(t, s, document("a.md", "epsilon"), document("b.md", "one"))
	put(t, s, document("a.md", "alpha", "delta"))
	put(t, s, document("b.md", "two"))
	closing := open(t, o)
	put(t, closing, document("b.md", "three"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := closing.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	if n := points(t, s, o.Collection); n != 2+2+1 {
		t.Errorf("%d points after Close, want 5", n)
	}
	if got := find(t, s, retrieval.Query{Texts: []string{"three"}}); !strings.HasPrefix(got, "b.md/1") || strings.Count(got, "/") != 3 {
		t.Errorf("finds %s", got)
	}
}

// A process that ends in the middle of a write leaves the old document, and
// whoever writes next leaves nothing of the unfinished one.
func TestUnfinished(t *testing.T) {
	o := ownCollection(t, qdrant.Options{})
	for _, method := range []string{"Upsert", "Count"} {
		for n := range 4 {
			t.Run(fmt.Sprintf("%s %d", method, n), func(t *testing.T) {
				t.Parallel()
				testUnfinished(t, o, method, n)
			})
		}
	}
}

func testUnfinished(t *testing.T, o qdrant.Options, method string, n int) {
	name := fmt.Sprintf("%s %d", method, n)
	down := false
	var mu sync.Mutex
	proxy := qdranttest.StartProxy(t, qdranttest.Shared(t), qdranttest.ProxyOptions{Fault: func(m string, _ int) qdranttest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if m == method && n == 0 {
			down = true
		}
		if m == method {
			n--
		}
		if down {
			return qdranttest.Fault{Code: 13}
		}
		return qdranttest.Fault{}
	}})
	o.Tenant = name
	good := open(t, o)
	put(t, good, document("a.md", "alpha old", "beta old"))
	broken := o
	broken.Addr, broken.RetryFor, broken.BatchBytes = proxy.Addr, -1, 4000
	bad := open(t, broken)
	err := bad.ReplaceAll(t.Context(), []retrieval.Chunked{document("a.md", "alpha new", "beta new", "gamma new"), document("b.md", "delta new")})
	if err == nil {
		if down {
			t.Errorf("%s: no error though the server was down", name)
		}
		return
	}
	got, _ := good.Retrieve(t.Context(), retrieval.Query{Texts: []string{"alpha"}, Limit: 10})
	var texts []string
	for _, p := range got {
		texts = append(texts, p.Text)
	}
	if slices.Sort(texts); !slices.Equal(texts, []string{"alpha old", "beta old"}) && !slices.Equal(texts, []string{"alpha new", "beta new", "delta new", "gamma new"}) {
		t.Errorf("%s: readers see %q", name, texts)
	}
	documents, err := good.Documents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report, err := retrieval.Sync(t.Context(), good, inputs(document("a.md", "alpha new", "beta new", "gamma new"), document("b.md", "delta new")), retrieval.SyncOptions{})
	if err != nil {
		t.Errorf("%s: %v (there were %v)", name, err, documents)
	}
	if err := good.Close(); err != nil {
		t.Fatal(err)
	}
	good = open(t, o)
	if n := points(t, good, o.Collection, api.NewMatch("tenant", name)); n != 2+4 {
		t.Errorf("%s: %d points after all, want 6; %+v", name, n, report)
	}
}

func inputs(documents ...retrieval.Chunked) func(func(retrieval.Input, error) bool) {
	return func(yield func(retrieval.Input, error) bool) {
		for _, d := range documents {
			if !yield(retrieval.Input{Document: d.Document, Fingerprint: d.Fingerprint, Passages: func() ([]retrieval.Passage, error) { return d.Passages, nil }}, nil) {
				return
			}
		}
	}
}

// Writes stay below the limit of messages, here one far below the usual.
func TestBatchBytes(t *testing.T) {
	const limit = 64 << 10
	server := qdranttest.Start(t, "--max-message", fmt.Sprint(limit))
	proxy := qdranttest.StartProxy(t, server.Addr, qdranttest.ProxyOptions{})
	s := open(t, qdrant.Options{Addr: proxy.Addr, BatchBytes: limit - 1024, RetryFor: -1})
	var texts []string
	for i := range 300 {
		texts = append(texts, fmt.Sprintf("passage %d %s", i, strings.Repeat("x y ", i)))
	}
	put(t, s, document("a.md", texts...))
	if largest := proxy.Largest("Upsert"); largest > limit-1024 || largest < limit/2 {
		t.Errorf("the largest write has %d bytes, the limit is %d", largest, limit-1024)
	}
	if n, err := s.Len(t.Context()); n != len(texts) || err != nil {
		t.Errorf("%d passages, %v", n, err)
	}
	careless := open(t, qdrant.Options{Addr: server.Addr})
	start := time.Now()
	if err := careless.ReplaceAll(t.Context(), []retrieval.Chunked{document("c.md", texts...)}); err == nil || !strings.Contains(err.Error(), "BatchBytes") || time.Since(start) > 10*time.Second {
		t.Errorf("writes beyond the server's limit: %v after %v", err, time.Since(start))
	}
	err := s.Replace(t.Context(), "huge.md", "1", document("huge.md", "small", strings.Repeat("huge ", limit)).Passages)
	if !errors.Is(err, retrieval.ErrInvalid) || !strings.Contains(err.Error(), "huge.md/2") || !strings.Contains(err.Error(), "BatchBytes") {
		t.Errorf("a passage beyond the limit: %v", err)
	}
	if documents, err := s.Documents(t.Context()); err != nil || documents["huge.md"] != "" {
		t.Errorf("the document that was refused is there: %v, %v", documents, err)
	}
}

// At most Parallel writes are under way, and embedding waits for them.
func TestBackPressure(t *testing.T) {
	var mu sync.Mutex
	busy, most, embeddedBy := 0, 0, make(map[int]int)
	embedder := new(retrievertest.Embedder)
	embedded := 0
	embedder.Err = func(string) error {
		mu.Lock()
		defer mu.Unlock()
		embedded++
		return nil
	}
	proxy := qdranttest.StartProxy(t, qdranttest.Shared(t), qdranttest.ProxyOptions{Fault: func(method string, n int) qdranttest.Fault {
		if method != "Upsert" {
			return qdranttest.Fault{}
		}
		mu.Lock()
		busy++
		most = max(most, busy)
		embeddedBy[n] = embedded
		mu.Unlock()
		time.Sleep(50 * time.Millisecond)
		mu.Lock()
		busy--
		mu.Unlock()
		return qdranttest.Fault{}
	}})
	const passages, each = 1000, 10
	s := open(t, qdrant.Options{Addr: proxy.Addr, Embedder: embedder, Parallel: 3, BatchBytes: each * 2200})
	var texts []string
	for i := range passages {
		texts = append(texts, fmt.Sprintf("passage %d", i))
	}
	put(t, s, document("a.md", texts...))
	if most > 3 || most < 2 {
		t.Errorf("%d writes at a time, want 3", most)
	}
	// A queue without bounds would have all embedded before the tenth write.
	if at := embeddedBy[10]; at > passages/2 {
		t.Errorf("%d of %d passages were embedded by the tenth write", at, passages)
	}
}

// Without waiting for each write, a document is visible once it is whole.
func TestNoWait(t *testing.T) {
	s := open(t, qdrant.Options{NoWait: true})
	var texts []string
	for i := range 500 {
		texts = append(texts, fmt.Sprintf("passage %d", i))
	}
	put(t, s, document("a.md", texts...))
	if got := find(t, s, retrieval.Query{Texts: []string{"passage 499"}, Limit: 1}); got != "a.md/500" {
		t.Errorf("finds %q", got)
	}
	put(t, s, document("a.md", texts[:250]...))
	if got := find(t, s, retrieval.Query{Texts: []string{"passage 499"}, Limit: 1}); got == "a.md/500" {
		t.Error("the old passage is found")
	}
}

// Several writers and readers at a time: readers see each document whole.
func TestWritersAndReaders(t *testing.T) {
	s := open(t, qdrant.Options{})
	revision := func(name string, n int) retrieval.Chunked {
		return document(name, fmt.Sprintf("apple %s %d", name, n), fmt.Sprintf("banana %s %d", name, n), fmt.Sprintf("cherry %s %d", name, n))
	}
	names := []string{"a.md", "b.md", "c.md"}
	for _, name := range names {
		put(t, s, revision(name, 0))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				passages, err := s.Retrieve(t.Context(), retrieval.Query{Texts: []string{"apple banana"}, Limit: 20})
				if err != nil {
					t.Error(err)
					return
				}
				seen := make(map[string]int)
				for _, p := range passages {
					words := strings.Fields(p.Text)
					seen[words[1]+" "+words[2]]++
				}
				if len(seen) != 3 || slices.ContainsFunc(slices.Collect(maps.Values(seen)), func(n int) bool { return n != 3 }) {
					t.Errorf("a reader sees %v", seen)
					return
				}
			}
		})
	}
	for i := range names {
		writers.Go(func() {
			for n := range 8 {
				// Two documents a time, which other writers write too.
				err := s.ReplaceAll(t.Context(), []retrieval.Chunked{revision(names[i], 10*n+i), revision(names[(i+1)%3], 10*n+i)})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	if n, err := s.Len(t.Context()); n < 9 || err != nil {
		t.Errorf("%d passages, %v", n, err)
	}
}

// Two processes that write one document leave it whole, of one or the other.
func TestTwoWriters(t *testing.T) {
	o := named(t, qdrant.Options{})
	var writers sync.WaitGroup
	for w := range 2 {
		s := open(t, o)
		writers.Go(func() {
			for n := range 8 {
				d := document("a.md", fmt.Sprintf("apple %d.%d", w, n), fmt.Sprintf("banana %d.%d", w, n), fmt.Sprintf("cherry %d.%d", w, n))
				if n%3 == 2 { // what the other writes too
					d = document("a.md", "apple", "banana", "cherry")
				}
				if err := s.ReplaceAll(t.Context(), []retrieval.Chunked{d}); err != nil && !errors.Is(err, qdrant.ErrConflict) {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	passages, err := open(t, o).Retrieve(t.Context(), retrieval.Query{Texts: []string{"apple"}, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, p := range passages {
		_, revision, _ := strings.Cut(p.Text, " ")
		seen[revision]++
	}
	if len(passages) != 3 || len(seen) != 1 {
		t.Errorf("readers see %v", passages)
	}
}

// Points that were lost on the server come back when the document is stored
// again, though its record says that they are there.
func TestLostPoints(t *testing.T) {
	o := named(t, qdrant.Options{})
	s := open(t, o)
	d := document("a.md", "alpha", "beta", "gamma")
	put(t, s, d)
	wait := true
	_, err := s.Client().Points().Delete(t.Context(), &api.DeletePoints{CollectionName: o.Collection, Wait: &wait, Points: api.NewPointsSelectorFilter(
		&api.Filter{Must: []*api.Condition{api.NewMatch("tenant", o.Tenant), api.NewMatch("id", "a.md/2")}})})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Len(t.Context()); n != 2 || err != nil {
		t.Fatalf("%d passages, %v; want one lost", n, err)
	}
	put(t, s, d)
	if n, err := s.Len(t.Context()); n != 3 || err != nil {
		t.Errorf("%d passages, %v; want 3", n, err)
	}
}

// A document that one process has made whole is not taken away by another that
// is about to store it for the first time too.
func TestAnnounced(t *testing.T) {
	o := named(t, qdrant.Options{})
	fast := open(t, o)
	var once sync.Once
	proxy := qdranttest.StartProxy(t, o.Addr, qdranttest.ProxyOptions{Fault: func(method string, _ int) qdranttest.Fault {
		if method == "Upsert" { // the announcement; the other comes first
			once.Do(func() { put(t, fast, document("a.md", "alpha of the fast")) })
			return qdranttest.Fault{}
		}
		if method == "Count" {
			return qdranttest.Fault{Code: 13} // it never commits
		}
		return qdranttest.Fault{}
	}})
	o.Addr = proxy.Addr
	slow := open(t, o)
	if err := slow.ReplaceAll(t.Context(), []retrieval.Chunked{document("a.md", "alpha of the slow")}); err == nil {
		t.Error("no error")
	}
	passages, err := fast.Retrieve(t.Context(), retrieval.Query{Texts: []string{"alpha"}})
	if err != nil || len(passages) != 1 || passages[0].Text != "alpha of the fast" {
		t.Errorf("%v, %v", passages, err)
	}
}

func TestDeleteWhere(t *testing.T) {
	s := open(t, qdrant.Options{})
	for i, language := range []string{"en", "de", "de"} {
		d := document(fmt.Sprintf("%d.md", i), "alpha", "beta")
		for j := range d.Passages {
			d.Passages[j].Metadata = map[string]string{"language": language, "n": fmt.Sprint(i)}
		}
		put(t, s, d)
	}
	if got, err := s.DeleteWhere(t.Context(), map[string]string{"language": "de", "n": "7"}); len(got) != 0 || err != nil {
		t.Errorf("a filter that nothing meets deletes %v, %v", got, err)
	}
	if got, err := s.DeleteWhere(t.Context(), map[string]string{"language": "de"}); !slices.Equal(got, []string{"1.md", "2.md"}) || err != nil {
		t.Errorf("deleted %v, %v", got, err)
	}
	if got, err := s.DeleteWhere(t.Context(), nil); got != nil || err == nil {
		t.Error("an empty filter is taken")
	}
	if documents, err := s.Documents(t.Context()); len(documents) != 1 || err != nil {
		t.Errorf("left are %v, %v", documents, err)
	}
	if n, err := s.Len(t.Context()); n != 2 || err != nil {
		t.Errorf("left are %d passages, %v", n, err)
	}
}

// Invalid bytes are an error that names the file, at every field and however
// they came about; never a panic.
func TestInvalidBytes(t *testing.T) {
	s := open(t, qdrant.Options{})
	for _, bad := range []string{"caf\xe9", "日本"[:4], "\xff", "a\xc0\x80b", "\xed\xa0\x80"} {
		for field, spoil := range map[string]func(d *retrieval.Chunked){
			"document": func(d *retrieval.Chunked) { d.Document = bad; d.Passages[0].Document = bad },
			"path":     func(d *retrieval.Chunked) { d.Passages[0].Source = bad },
			"title":    func(d *retrieval.Chunked) { d.Passages[0].Title = bad },
			"text":     func(d *retrieval.Chunked) { d.Passages[0].Text = bad },
			"id":       func(d *retrieval.Chunked) { d.Passages[0].ID = bad },
			"key":      func(d *retrieval.Chunked) { d.Passages[0].Metadata = map[string]string{bad: "x"} },
			"value":    func(d *retrieval.Chunked) { d.Passages[0].Metadata = map[string]string{"x": bad} },
			"mark":     func(d *retrieval.Chunked) { d.Fingerprint = bad },
		} {
			d := document("menu.md", "alpha")
			spoil(&d)
			name := "menu.md"
			if field == "document" {
				name = fmt.Sprintf("%q", bad)
			}
			if err := s.ReplaceAll(t.Context(), []retrieval.Chunked{d}); !errors.Is(err, retrieval.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s %q: %v, want an error that names the file", field, bad, err)
			}
		}
		// What is asked is cleaned, not refused.
		if _, err := s.Retrieve(t.Context(), retrieval.Query{Texts: []string{bad}}); err != nil {
			t.Errorf("asking %q: %v", bad, err)
		}
		if _, err := s.KnownIdentifiers(t.Context(), "ERR-5172 "+bad); err != nil {
			t.Errorf("asking for the identifiers of %q: %v", bad, err)
		}
		if err := s.Delete(t.Context(), bad); err != nil {
			t.Errorf("deleting %q: %v", bad, err)
		}
		if _, err := s.DeleteWhere(t.Context(), map[string]string{bad: bad}); err != nil {
			t.Errorf("deleting where %q: %v", bad, err)
		}
	}
}
