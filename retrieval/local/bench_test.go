package local

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

// vectorEmbedder gives pseudo-random vectors, the same for the same text.
type vectorEmbedder struct{ dim int }

func (e vectorEmbedder) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = randomVector(rand.New(rand.NewPCG(uint64(len(text)), uint64(text[0]))), e.dim)
	}
	return out, nil
}

func (e vectorEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	v, err := e.EmbedDocuments(ctx, []string{text})
	return v[0], err
}

func randomVector(r *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// corpus makes documents of 20 passages of 120 words, distributed roughly as
// in a language (a word of rank r with weight 1/r).
func corpus(passages int) []retrieval.Chunked {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 1, 30_000)
	documents := make([]retrieval.Chunked, passages/20)
	for i := range documents {
		d := &documents[i]
		d.Document, d.Fingerprint = fmt.Sprintf("document%05d.md", i), "1"
		for j := range 20 {
			words := make([]string, 120)
			for k := range words {
				words[k] = word(zipf.Uint64())
			}
			words[50] = fmt.Sprintf("ERR-%d%02d", i, j)
			d.Passages = append(d.Passages, retrieval.Passage{ID: fmt.Sprintf("%d/%d", i, j), Document: d.Document,
				Title: "Document " + word(uint64(i)), Source: d.Document, Text: strings.Join(words, " ")})
		}
	}
	return documents
}

// word spells a number in syllables.
func word(n uint64) string {
	var b strings.Builder
	for {
		b.WriteString([]string{"ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "pra"}[n%16])
		if n /= 16; n == 0 {
			return b.String()
		}
	}
}

func filled(b *testing.B, path string, passages int) *Index {
	b.Helper()
	x, err := Open(b.Context(), Options{Path: path, Embedder: vectorEmbedder{384}})
	if err != nil {
		b.Fatal(err)
	}
	documents := corpus(passages)
	for len(documents) > 0 {
		n := min(len(documents), 16)
		if err := x.ReplaceAll(b.Context(), documents[:n]); err != nil {
			b.Fatal(err)
		}
		documents = documents[n:]
	}
	return x
}

func BenchmarkDense100k(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var d dense
	d.setDim(384)
	for range 100_000 {
		v, err := prepare.Unit(randomVector(r, 384))
		if err != nil {
			b.Fatal(err)
		}
		d.add(v)
	}
	query := d.at(77)
	all := func(int32) bool { return true }
	before := func(a, b int32) bool { return a < b }
	for b.Loop() {
		if got := top(d.cosines(query), 10, all, before); got[0] != 77 {
			b.Fatal(got)
		}
	}
}

func BenchmarkBM25Of100k(b *testing.B) {
	m := newMemory(8)
	for _, d := range corpus(100_000) {
		var entries []*entry
		for _, p := range d.Passages {
			entries = append(entries, newEntry(p, make([]float32, 8)))
		}
		m.replace(d.Document, "1", entries)
	}
	query := strings.Join([]string{word(3), word(40), word(500), word(6000), word(20000)}, " ")
	all := func(int32) bool { return true }
	before := func(a, b int32) bool { return a < b }
	for b.Loop() {
		scores := m.lexical.score(prepare.Terms(query), make([]float32, len(m.entries)))
		if got := top(scores, 10, all, before); len(got) != 10 {
			b.Fatal(got)
		}
	}
}

func BenchmarkRetrieve10k(b *testing.B) {
	x := filled(b, "", 10_000)
	for _, text := range []string{strings.Join([]string{word(3), word(40), word(500), word(6000)}, " "), "what does ERR-7707 mean"} {
		b.Run(strings.Fields(text)[0], func(b *testing.B) {
			for b.Loop() {
				if got, err := x.Retrieve(b.Context(), retrieval.Query{Texts: []string{text}}); err != nil || len(got) == 0 {
					b.Fatal(got, err)
				}
			}
		})
	}
}

func BenchmarkOpen5k(b *testing.B) {
	path := filepath.Join(b.TempDir(), "index.db")
	x := filled(b, path, 5_000)
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x, err := Open(b.Context(), Options{Path: path, Embedder: vectorEmbedder{384}})
		if err != nil {
			b.Fatal(err)
		}
		if x.Len() != 5_000 {
			b.Fatal(x.Len())
		}
		b.StopTimer()
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkReplace is the cost of indexing without the embedder's, for each
// passage.
func BenchmarkReplace(b *testing.B) {
	for _, path := range []string{"", filepath.Join(b.TempDir(), "index.db")} {
		b.Run(map[bool]string{true: "memory", false: "disk"}[path == ""], func(b *testing.B) {
			documents := corpus(2_000)
			x, err := Open(b.Context(), Options{Path: path, Embedder: vectorEmbedder{384}})
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			n := 0
			for b.Loop() {
				d := documents[n%len(documents)]
				n++
				if err := x.Replace(b.Context(), d.Document, fmt.Sprint(n), d.Passages); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*20), "ns/passage")
		})
	}
}
