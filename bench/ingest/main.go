// Command ingest shows that ingestion is as fast as the encoder: it measures the
// passages a second of the encoder alone, and those of the stores with the
// vectors given.
//
//	go run ./bench/ingest [-n 100000]
//
// The stores are the embedded index, in a file, and Qdrant if QDRANT_ADDR names
// a server; a collection of its own is filled there and left empty.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/askback/askback/cmd/askback/sample"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
	"github.com/askback/askback/retrieval/qdrant"
)

func main() {
	log.SetFlags(0)
	n := flag.Int("n", 100_000, "passages to store")
	flag.Parse()
	ctx := context.Background()
	embedder := must(minilm.New())
	passages := samplePassages(ctx, embedder)

	var texts []string
	for _, p := range passages {
		texts = append(texts, retrieval.EmbeddingText(p))
	}
	must(embedder.EmbedQuery(ctx, "to be warm"))
	start := time.Now()
	must(embedder.EmbedDocuments(ctx, texts))
	encoder := float64(len(texts)) / time.Since(start).Seconds()
	fmt.Printf("%-36s %8.0f passages/s\n", "encoder", encoder)

	dir := must(os.MkdirTemp("", "askback-bench-"))
	defer os.RemoveAll(dir)
	options := local.Options{Path: filepath.Join(dir, "index.db"), Embedder: random{}}
	index := must(local.Open(ctx, options))
	fill(ctx, "embedded index, in a file", index, passages, *n, encoder)
	must(0, index.Close())
	start = time.Now()
	index = must(local.Open(ctx, options))
	fmt.Printf("%-36s %8.0f passages/s: opened in %.1f s\n", "the file read again", float64(*n)/time.Since(start).Seconds(), time.Since(start).Seconds())
	must(0, index.Close())

	if addr := os.Getenv("QDRANT_ADDR"); addr != "" {
		store := must(qdrant.Open(ctx, qdrant.Options{Addr: addr, APIKey: os.Getenv("QDRANT_API_KEY"), Collection: "askback-bench-ingest", Embedder: random{}, NoWait: true}))
		documents := fill(ctx, "Qdrant", store, passages, *n, encoder)
		for some := range slices.Chunk(documents, 100) {
			must(0, store.Delete(ctx, some...))
		}
		must(0, store.Close())
	}
}

// samplePassages gives the passages of the sample knowledge base.
func samplePassages(ctx context.Context, embedder *minilm.Embedder) (all []retrieval.Passage) {
	inputs := documents.Inputs(ctx, fs.FS(sample.Documents), documents.InputOptions{Chunk: retrieval.ChunkOptions{Count: embedder.Count}})
	for input, err := range inputs {
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, must(input.Passages())...)
	}
	return all
}

// fill stores n passages in documents of fifty, each the sample's with a number,
// and prints the rate. It gives the documents' names.
func fill(ctx context.Context, name string, store retrieval.BatchStore, passages []retrieval.Passage, n int, encoder float64) (names []string) {
	var batch []retrieval.Chunked
	var took time.Duration
	for i := 0; i < n; {
		d := retrieval.Chunked{Document: fmt.Sprintf("document%07d", i), Fingerprint: "1"}
		for ; i < n && len(d.Passages) < 50; i++ {
			p := passages[i%len(passages)]
			p.ID, p.Document = fmt.Sprintf("p%d", i), d.Document
			p.Text = fmt.Sprintf("%s (%d)", p.Text, i)
			d.Passages = append(d.Passages, p)
		}
		names = append(names, d.Document)
		if batch = append(batch, d); len(batch) == 10 || i == n {
			start := time.Now()
			must(0, store.ReplaceAll(ctx, batch))
			took += time.Since(start)
			batch = nil
		}
	}
	rate := float64(n) / took.Seconds()
	fmt.Printf("%-36s %8.0f passages/s: %.0f times the encoder's; %d in %.0f s, embedding them takes %.0f s\n",
		name, rate, rate/encoder, n, took.Seconds(), float64(n)/encoder)
	return names
}

// random is an embedder that costs next to nothing.
type random struct{}

func (random) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		r := rand.New(rand.NewPCG(uint64(len(text)), uint64(i)))
		vectors[i] = make([]float32, 384)
		for k := range vectors[i] {
			vectors[i][k] = r.Float32() - 0.5
		}
	}
	return vectors, nil
}

func (r random) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	v, err := r.EmbedDocuments(ctx, []string{text})
	return v[0], err
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
