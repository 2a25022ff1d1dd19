// Package minilm is the embedded embedder: all-MiniLM-L6-v2 in the process, in
// pure Go, with its weights in the binary. English; 384 dimensions.
package minilm

import (
	"context"

	"github.com/askback/askback/internal/encoder"
	"github.com/askback/askback/retrieval"
)

// Embedder turns texts into vectors of length 1. It is safe for concurrent use,
// and cheap: the weights are loaded once for the whole process.
type Embedder struct {
	model    *encoder.Model
	embedder *encoder.Embedder
}

var _ retrieval.Embedder = (*Embedder)(nil)

// New gives the embedder. It fails only if the binary's weights are damaged.
func New() (*Embedder, error) {
	model, err := encoder.MiniLM()
	if err != nil {
		return nil, err
	}
	return &Embedder{model, encoder.NewEmbedder(model)}, nil
}

// EmbedDocuments gives a vector for each text; a text longer than the model
// reads at once is read in windows, and nothing is cut off.
func (e *Embedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	return e.embedder.EmbedDocuments(ctx, texts)
}

// EmbedQuery gives a query's vector. Of one of 2,000 characters or more that is
// longer than the model reads at once, the beginning and the end count.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	return e.embedder.EmbedQuery(ctx, text)
}

// Identity names the model, its weights and its pooling. Vectors of two
// identities cannot be compared; local.Options takes it.
func (e *Embedder) Identity() string { return e.embedder.Identity() }

// Count gives the number of tokens in a text; retrieval.ChunkOptions takes it.
func (e *Embedder) Count(text string) int { return e.model.Tokenizer().Count(text) }

// Similarity gives the cosine of a with each of b, -1 to 1. A very long a is read
// as EmbedQuery reads it.
func (e *Embedder) Similarity(ctx context.Context, a string, b []string) ([]float64, error) {
	said, err := e.EmbedQuery(ctx, a)
	if err != nil {
		return nil, err
	}
	vectors, err := e.EmbedDocuments(ctx, b)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(b))
	for i, v := range vectors {
		for k, x := range v {
			out[i] += float64(x) * float64(said[k])
		}
	}
	return out, nil
}
