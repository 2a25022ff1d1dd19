package encoder

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Embedder turns texts into vectors of length 1 whose inner product measures
// how near their meanings are. Its methods are those of langchaingo's
// embeddings.Embedder. It is safe for concurrent use.
type Embedder struct {
	model *Model
}

// NewEmbedder makes an embedder that pools as the model's config says.
func NewEmbedder(m *Model) *Embedder { return &Embedder{model: m} }

// Dimension gives the length of the vectors.
func (e *Embedder) Dimension() int { return e.model.config.Hidden }

// Identity names what makes the vectors: vectors of equal identity can be
// compared with each other, others cannot.
func (e *Embedder) Identity() string {
	c := &e.model.config
	return fmt.Sprintf("%s@%s/%s", c.Name, c.Fingerprint, c.Pooling)
}

// longQuery is the number of characters from which on a question is not read
// whole if the model does not take it in one piece: nobody asks at that length,
// it is a text that somebody pasted.
const longQuery = 2000

// EmbedQuery gives the vector of a question. Of one of 2,000 characters or more
// that is longer than the model takes, the first and the last tokens count, as
// many as it does take; a shorter one is read as EmbedDocuments reads a text.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := e.embed(ctx, []string{text}, e.model.config.QueryPrefix, utf8.RuneCountInString(text) >= longQuery)
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// EmbedDocuments gives the vector of each text, in the order of the texts.
//
// A text longer than the model takes is cut into windows of equal length, and
// its vector is the mean of the windows' vectors, weighted by their tokens and
// brought back to length 1: all of it counts. An empty text, or one without
// any token, gets the vector of the bare special tokens.
func (e *Embedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	return e.embed(ctx, texts, e.model.config.DocumentPrefix, false)
}

// batchTokens bounds the tokens that go through the model at once.
const batchTokens = 4096

// window is a part of a text that the model takes in one piece.
type window struct {
	text   int // index of the text
	ids    []int32
	weight float32 // tokens of the text in it
}

// embed gives the vector of each text; ends says that of a text longer than a
// window its two ends make one.
func (e *Embedder) embed(ctx context.Context, texts []string, prefix string, ends bool) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var pending []window
	tokens := 0
	flush := func() error {
		err := e.addWindows(ctx, pending, vectors)
		pending, tokens = pending[:0], 0
		return err
	}
	for i, text := range texts {
		vectors[i] = make([]float32, e.Dimension())
		for _, w := range e.windows(i, text, prefix, ends) {
			if tokens > 0 && tokens+len(w.ids) > batchTokens {
				if err := flush(); err != nil {
					return nil, err
				}
			}
			pending = append(pending, w)
			tokens += len(w.ids)
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	for _, v := range vectors {
		normalise(v)
	}
	return vectors, nil
}

// windows cuts a text into pieces of nearly equal length, each with the prefix, or
// takes its ends as one.
func (e *Embedder) windows(index int, text, prefix string, ends bool) []window {
	t := e.model.tokenizer
	start := []int32{t.cls}
	for _, token := range t.Tokenize(prefix) {
		start = append(start, token.ID)
	}
	room := max(e.model.config.MaxTokens-len(start)-1, 1)
	tokens := t.Tokenize(text)
	if ends && len(tokens) > room {
		tokens = append(tokens[:(room+1)/2], tokens[len(tokens)-room/2:]...)
	}
	parts := max(1, (len(tokens)+room-1)/room)
	windows := make([]window, parts)
	for i := range windows {
		part := tokens[i*len(tokens)/parts : (i+1)*len(tokens)/parts]
		ids := slices.Grow(slices.Clone(start), len(part)+1)
		for _, token := range part {
			ids = append(ids, token.ID)
		}
		windows[i] = window{text: index, ids: append(ids, t.sep), weight: float32(max(len(part), 1))}
	}
	return windows
}

// addWindows adds each window's vector, of length 1 times its weight, to the
// vector of its text.
func (e *Embedder) addWindows(ctx context.Context, windows []window, vectors [][]float32) error {
	if len(windows) == 0 {
		return nil
	}
	// Windows of similar length together make the groups that run side by side
	// equally long.
	slices.SortStableFunc(windows, func(a, b window) int { return cmp.Compare(len(b.ids), len(a.ids)) })
	seqs := make([]Sequence, len(windows))
	for i, w := range windows {
		seqs[i].IDs = w.ids
	}
	states, err := e.model.Forward(ctx, seqs, Options{})
	if err != nil {
		return err
	}
	for i, w := range windows {
		v := e.pool(states[i])
		normalise(v)
		for j, x := range v {
			vectors[w.text][j] += w.weight * x
		}
	}
	return nil
}

func (e *Embedder) pool(states []float32) []float32 {
	n := e.Dimension()
	v := slices.Clone(states[:n])
	if e.model.config.Pooling == CLSPooling {
		return v
	}
	for row := states[n:]; len(row) > 0; row = row[n:] {
		for j, x := range row[:n] {
			v[j] += x
		}
	}
	return v // its length does not matter, so the sum is as good as the mean
}

// normalise brings v to length 1; a zero vector stays.
func normalise(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
}
