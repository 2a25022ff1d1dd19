package retrievertest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
)

const (
	quoted = 128 // bytes of the text that a vector quotes
	words  = 256 // numbers that hold the words
	scale  = 1e-3
)

// Dimension is the length of Embedder's vectors.
const Dimension = 1 + quoted + words

// Embedder is an embedder for tests. Texts that share words have a high cosine,
// so that rankings can be told by reading, and Quote gives back the start of
// the text from its vector, so that a failing test can be read. It remembers
// what it was asked to embed. The zero value works; it is safe for concurrent
// use.
type Embedder struct {
	// Err, if set, is called with each text before it is embedded.
	Err func(text string) error

	mu       sync.Mutex
	embedded []string
}

// EmbedDocuments gives a vector for each text.
func (e *Embedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := e.check(ctx, text); err != nil {
			return nil, err
		}
		vectors[i] = Vector(text)
		e.mu.Lock()
		e.embedded = append(e.embedded, text)
		e.mu.Unlock()
	}
	return vectors, nil
}

// EmbedQuery gives the vector of a query; it is not among what Embedded gives.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if err := e.check(ctx, text); err != nil {
		return nil, err
	}
	return Vector(text), nil
}

func (e *Embedder) check(ctx context.Context, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.Err != nil {
		return e.Err(text)
	}
	return nil
}

// Embedded gives the texts embedded by EmbedDocuments since the last call, in
// order.
func (e *Embedder) Embedded() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	texts := e.embedded
	e.embedded = nil
	return texts
}

// Vector is what Embedder gives for a text: a number that the others are read
// against, the first bytes of the text, too small to weigh, and for each word a
// one in a place of its own, as far as places go.
func Vector(text string) []float32 {
	v := make([]float32, Dimension)
	v[0] = scale
	for i := range min(len(text), quoted) {
		v[1+i] = scale * (float32(text[i]) + 1) / 256
	}
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, word := range fields {
		for _, part := range parts(word) {
			h := fnv.New32a()
			h.Write([]byte(part))
			v[1+quoted+h.Sum32()%words] = 1
		}
	}
	return v
}

// parts cuts what may be a script without word spaces into pairs of letters.
func parts(word string) []string {
	runes := []rune(word)
	if len(runes) == len(word) || len(runes) < 2 {
		return []string{word}
	}
	var pairs []string
	for i := range len(runes) - 1 {
		pairs = append(pairs, string(runes[i:i+2]))
	}
	return pairs
}

// Quote gives the start of the text that a vector was made from, scaled or not.
func Quote(v []float32) string {
	if len(v) != Dimension || v[0] <= 0 {
		return fmt.Sprintf("(no vector of retrievertest: %d numbers)", len(v))
	}
	var text []byte
	for _, x := range v[1 : 1+quoted] {
		b := int(math.Round(float64(x)/float64(v[0])*256)) - 1
		if b < 0 {
			break
		}
		text = append(text, byte(b))
	}
	return string(slices.Clip(text))
}
