package web_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askback/askback/cmd/askback/sample"
	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/lora"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
	"github.com/askback/askback/server"
	"github.com/askback/askback/server/web"
)

// models are read once.
var models = sync.OnceValues(func() (m struct {
	embedder  *minilm.Embedder
	clarifier *lora.Clarifier
}, err error) {
	if m.embedder, err = minilm.New(); err == nil {
		m.clarifier, err = lora.New(nil)
	}
	return m, err
})

// site is a real server over the sample, with the page.
type site struct {
	*httptest.Server
	store  conversation.Store
	writer *writer
	down   atomic.Bool  // the service "Model server" is
	cut    atomic.Int32 // > 0: streams of turns break off after so many bytes
	gone   atomic.Bool  // nothing is answered
	seen   sync.Map     // paths with methods, and how often: *atomic.Int32
}

// writer answers as the embedded generator does, or as a test has it.
type writer struct {
	generation.Generator
	mu   sync.Mutex
	text string        // says this instead, if not ""
	step time.Duration // between two words
	err  error
}

func (w *writer) set(text string, step time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text, w.step = text, step
}

func (w *writer) Generate(ctx context.Context, r generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		w.mu.Lock()
		text, step, fault := w.text, w.step, w.err
		w.mu.Unlock()
		if fault != nil {
			yield(generation.Event{}, fault)
			return
		}
		if text == "" {
			for e, err := range w.Generator.Generate(ctx, r) {
				if !yield(e, err) {
					return
				}
			}
			return
		}
		for _, word := range strings.SplitAfter(text, " ") {
			select {
			case <-time.After(step):
			case <-ctx.Done():
				yield(generation.Event{}, ctx.Err())
				return
			}
			if !yield(generation.Event{Delta: word}, nil) {
				return
			}
		}
		a := &generation.Answer{Text: text, Found: true}
		if len(r.Passages) > 0 && strings.Contains(text, "[1]") {
			p := r.Passages[0]
			a.Citations = []generation.Citation{{N: 1, Passage: p.ID, Title: p.Title, Source: p.Source, Quote: p.Text}}
		}
		yield(generation.Event{Done: a}, nil)
	}
}

// newSite starts a server that has loaded the sample.
func newSite(t *testing.T) *site { return newSiteWith(t, func(*server.Options) {}) }

// newSiteWith is newSite with other options of the server.
func newSiteWith(t *testing.T, change func(*server.Options)) *site {
	t.Helper()
	m, err := models()
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := sample.Vectors(m.embedder.Identity())
	if err != nil {
		t.Fatal(err)
	}
	index, err := local.Open(t.Context(), local.Options{Embedder: m.embedder, Identity: m.embedder.Identity(), Vectors: vectors})
	if err != nil {
		t.Fatal(err)
	}
	chunk := retrieval.ChunkOptions{Count: m.embedder.Count}
	if _, err := retrieval.Sync(t.Context(), index, documents.Inputs(t.Context(), sample.Documents, documents.InputOptions{Chunk: chunk}), retrieval.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &site{store: conversation.NewMemory(), writer: &writer{Generator: generation.Extractive{Embedder: m.embedder}}}
	p, err := pipeline.New(pipeline.Parts{Retriever: index, Generator: s.writer, Clarifier: m.clarifier, Matcher: m.embedder, Store: s.store, Policy: gate.Policy{TimeLimit: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	about := server.About{Sources: "the sample knowledge base: " + sample.About, Clarifier: m.clarifier.Name(),
		Thresholds: server.Thresholds{Pre: m.clarifier.Threshold("pre"), Post: m.clarifier.Threshold("post")}}
	questions, err := sample.Questions()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		if q.Try {
			about.Samples = append(about.Samples, server.Sample{Question: q.Question, Shows: q.Shows()})
		}
	}
	o := server.Options{
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Open: func(context.Context) (*server.Backend, error) {
			return &server.Backend{Pipeline: p, Store: s.store, About: about, Documents: &server.Documents{Library: index, Chunk: chunk, Note: "What is added here is gone when the server ends."}}, nil
		},
		Checks: []server.Check{{Name: "Model server", Run: func(context.Context) error {
			if s.down.Load() {
				return errors.New("connection refused")
			}
			return nil
		}}},
	}
	change(&o)
	api, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	api.HandlePublic("/", web.Handler())
	s.Server = httptest.NewServer(s.watch(api.Handler()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = api.Close(ctx)
		s.CloseClientConnections()
		s.Close()
		_ = index.Close()
	})
	for range 100 {
		if r, err := http.Get(s.URL + "/readyz"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return s
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the server did not get ready")
	return nil
}

// watch counts requests, and breaks off the streams of turns where a test wants
// it.
func (s *site) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := r.Method + " " + strings.Split(strings.TrimPrefix(r.URL.Path, "/api/"), "/")[0]
		if strings.Contains(r.URL.Path, "/turns") {
			kind = r.Method + " turns"
		}
		n, _ := s.seen.LoadOrStore(kind, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		if s.gone.Load() {
			panic(http.ErrAbortHandler)
		}
		if limit := int(s.cut.Load()); limit > 0 && kind != "DELETE turns" && strings.Contains(r.URL.Path, "/turns") {
			w = &cutWriter{ResponseWriter: w, left: limit}
		}
		next.ServeHTTP(w, r)
	})
}

// fail takes the model server away, or brings it back.
func (s *site) fail(down bool) {
	s.down.Store(down)
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	s.writer.err = nil
	if down {
		s.writer.err = errors.New("connection refused")
	}
}

// count is how many requests of a kind came, such as "POST turns".
func (s *site) count(kind string) int {
	n, ok := s.seen.Load(kind)
	if !ok {
		return 0
	}
	return int(n.(*atomic.Int32).Load())
}

// cutWriter breaks the connection off after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutWriter) Write(b []byte) (int, error) {
	if len(b) > c.left {
		_, _ = c.ResponseWriter.Write(b[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	return c.ResponseWriter.Write(b)
}

// axe is the script that looks for faults of accessibility.
func axe(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(cache + "/askback/axe-core-4.14.1/axe.min.js")
	if err != nil {
		t.Fatal("this test needs axe-core; run: server/web/browsersetup")
	}
	return string(data)
}
