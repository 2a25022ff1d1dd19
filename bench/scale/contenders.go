package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/philippgille/chromem-go"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
)

// A contender holds the corpus and is asked for ten passages. What it does not
// offer it gives errNot for.
type contender interface {
	add(ctx context.Context, documents []retrieval.Chunked) error
	ready(ctx context.Context) error // after the last add
	dense(ctx context.Context, vector []float32) ([]string, error)
	hybrid(ctx context.Context, vector []float32, text string) ([]string, error)
	words(ctx context.Context, text string) ([]string, error)
	memory() float64 // MiB, of the process that holds the passages
	close()
}

var errNot = errors.New("not offered")

// given is the embedder: the vector of a passage is known from its text, that of
// the query is set before.
type given struct {
	corpus *corpus
	query  []float32
}

func (g *given) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = g.corpus.vector(number(text))
	}
	return vectors, nil
}

func (g *given) EmbedQuery(context.Context, string) ([]float32, error) { return g.query, nil }

// store is a contender of this module: its search is hybrid, and with a query
// of a word that no passage has, dense.
type store struct {
	store interface {
		retrieval.BatchStore
		retrieval.Retriever
	}
	given *given
	end   func()
}

func (s *store) add(ctx context.Context, documents []retrieval.Chunked) error {
	return s.store.ReplaceAll(ctx, documents)
}

func (s *store) ready(context.Context) error { return nil }

func (s *store) dense(ctx context.Context, vector []float32) ([]string, error) {
	return s.hybrid(ctx, vector, "xxxx")
}

func (s *store) hybrid(ctx context.Context, vector []float32, text string) ([]string, error) {
	s.given.query = vector
	passages, err := s.store.Retrieve(ctx, retrieval.Query{Texts: []string{text}, Limit: 10})
	var ids []string
	for _, p := range passages {
		ids = append(ids, p.ID)
	}
	return ids, err
}

func (s *store) words(context.Context, string) ([]string, error) { return nil, errNot }
func (s *store) memory() float64                                 { return resident("self") }
func (s *store) close()                                          { s.end() }

func openLocal(ctx context.Context, c *corpus) (contender, error) {
	g := &given{corpus: c}
	x, err := local.Open(ctx, local.Options{Embedder: g})
	if err != nil {
		return nil, err
	}
	return &store{store: x, given: g, end: func() { _ = x.Close() }}, nil
}

// chromem-go: exact search over vectors in memory; no words.
type chromemDB struct{ c *chromem.Collection }

func openChromem(context.Context, *corpus) (contender, error) {
	c, err := chromem.NewDB().CreateCollection("passages", nil, nil)
	return &chromemDB{c}, err
}

func (d *chromemDB) add(ctx context.Context, documents []retrieval.Chunked) error {
	var all []chromem.Document
	for _, doc := range documents {
		for _, p := range doc.Passages {
			all = append(all, chromem.Document{ID: p.ID, Content: p.Text, Embedding: running.vector(number(p.Text))})
		}
	}
	return d.c.AddDocuments(ctx, all, runtime.GOMAXPROCS(0))
}

func (d *chromemDB) ready(context.Context) error { return nil }

func (d *chromemDB) dense(ctx context.Context, vector []float32) ([]string, error) {
	found, err := d.c.QueryEmbedding(ctx, vector, 10, nil, nil)
	var ids []string
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	return ids, err
}

func (d *chromemDB) hybrid(context.Context, []float32, string) ([]string, error) { return nil, errNot }
func (d *chromemDB) words(context.Context, string) ([]string, error)             { return nil, errNot }
func (d *chromemDB) memory() float64                                             { return resident("self") }
func (d *chromemDB) close()                                                      {}

// bleve: an inverted index on disk. Its vector index needs a C++ library, so
// only its words are measured.
type bleveIndex struct {
	index bleve.Index
	dir   string
}

func openBleve(context.Context, *corpus) (contender, error) {
	dir, err := os.MkdirTemp("", "bleve-")
	if err != nil {
		return nil, err
	}
	mapping := bleve.NewIndexMapping()
	text := bleve.NewTextFieldMapping()
	text.Store, text.IncludeTermVectors, text.DocValues, text.IncludeInAll = false, false, false, false
	mapping.DefaultMapping.Dynamic = false
	mapping.DefaultMapping.AddFieldMappingsAt("Text", text)
	mapping.ScoringModel = "bm25"
	x, err := bleve.New(dir+"/index", mapping)
	return &bleveIndex{x, dir}, err
}

func (b *bleveIndex) add(_ context.Context, documents []retrieval.Chunked) error {
	batch := b.index.NewBatch()
	for _, d := range documents {
		for _, p := range d.Passages {
			if err := batch.Index(p.ID, struct{ Text string }{p.Text}); err != nil {
				return err
			}
		}
	}
	return b.index.Batch(batch)
}

func (b *bleveIndex) ready(context.Context) error { return nil }

func (b *bleveIndex) dense(context.Context, []float32) ([]string, error)          { return nil, errNot }
func (b *bleveIndex) hybrid(context.Context, []float32, string) ([]string, error) { return nil, errNot }

func (b *bleveIndex) words(ctx context.Context, text string) ([]string, error) {
	q := bleve.NewMatchQuery(text)
	q.SetField("Text")
	found, err := b.index.SearchInContext(ctx, bleve.NewSearchRequestOptions(q, 10, 0, false))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, h := range found.Hits {
		ids = append(ids, h.ID)
	}
	return ids, nil
}

func (b *bleveIndex) memory() float64 { return resident("self") }

func (b *bleveIndex) close() {
	_ = b.index.Close()
	_ = os.RemoveAll(b.dir)
}

// resident gives the memory of a process in MiB, after a collection if it is
// this one.
func resident(process string) float64 {
	if process == "self" {
		runtime.GC()
		runtime.GC()
	}
	status, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	return 0
}
