package ollama

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ollama/ollama/api"

	"github.com/askback/askback/internal/ollama"
	"github.com/askback/askback/retrieval"
)

var (
	// ErrTooLong says that a text is longer than the model reads, with
	// Options.Refuse.
	ErrTooLong = ollama.ErrTooLong
	// ErrUnreachable says that no server answers.
	ErrUnreachable = ollama.ErrUnreachable
	// ErrNoModel says that the server does not have the model.
	ErrNoModel = ollama.ErrNoModel
)

// Options say which model to ask, and how.
type Options struct {
	Host      string         // as OLLAMA_HOST is written; "": http://127.0.0.1:11434
	Model     string         // such as "nomic-embed-text"; required
	KeepAlive string         // how long it stays loaded, as in generation/ollama
	Batch     int            // texts in one request at most; 0: 32
	Context   int            // tokens read at once (num_ctx); 0: what the model can, 8192 at most
	Refuse    bool           // a text that is too long is an error, instead of being split
	Settings  map[string]any // further options of the server, such as "num_thread"
	HTTP      *http.Client   // sends the requests; nil: http.DefaultClient
	// Prefixes come before each query and each document. nil: those that the
	// model was trained with, if it is one of the families known here.
	Prefixes *Prefixes
}

// Prefixes are what a model was trained to see before texts.
type Prefixes struct{ Query, Document string }

// families are models that were trained with prefixes, as their cards say.
var families = []struct {
	name     string
	prefixes Prefixes
}{
	{"nomic-embed-text", Prefixes{"search_query: ", "search_document: "}},
	{"mxbai-embed-large", Prefixes{"Represent this sentence for searching relevant passages: ", ""}},
	{"embeddinggemma", Prefixes{"task: search result | query: ", "title: none | text: "}},
	{"multilingual-e5", Prefixes{"query: ", "passage: "}},
}

// Embedder asks a model for vectors of length 1. It is safe for concurrent use.
type Embedder struct {
	client    *ollama.Client
	options   Options
	prefixes  Prefixes
	keep      *api.Duration
	dimension int
	digest    string
}

var _ retrieval.Embedder = (*Embedder)(nil)

// New asks the server for the model and for a vector, to learn the dimension
// and that it works.
func New(ctx context.Context, o Options) (*Embedder, error) {
	if strings.TrimSpace(o.Model) == "" {
		return nil, errors.New("no embedding model is named; set Model, such as nomic-embed-text")
	}
	keep, err := ollama.ParseKeepAlive(o.KeepAlive)
	if err != nil {
		return nil, err
	}
	client, err := ollama.New(o.Host, o.HTTP)
	if err != nil {
		return nil, err
	}
	if o.Batch <= 0 {
		o.Batch = 32
	}
	e := &Embedder{client: client, options: o, keep: keep}
	if o.Prefixes != nil {
		e.prefixes = *o.Prefixes
	} else {
		for _, f := range families {
			if strings.Contains(o.Model, f.name) {
				e.prefixes = f.prefixes
			}
		}
	}
	info, err := client.Model(ctx, o.Model)
	if err != nil {
		return nil, fmt.Errorf("opening the embedder: %w", err)
	}
	if e.options.Context <= 0 {
		e.options.Context = 8192
		if info.Context > 0 {
			e.options.Context = min(info.Context, e.options.Context)
		}
	}
	if e.digest, err = client.Digest(ctx, o.Model); err != nil {
		return nil, fmt.Errorf("opening the embedder: %w", err)
	}
	probe, err := e.request(ctx, []string{"probe"})
	if err != nil {
		return nil, fmt.Errorf("trying the embedder: %w", err)
	}
	e.dimension = len(probe[0])
	return e, nil
}

// Dimension is the length of the vectors.
func (e *Embedder) Dimension() int { return e.dimension }

// Identity names the model, its weights, its prefixes and how long texts are
// read. Vectors of two identities cannot be compared.
func (e *Embedder) Identity() string {
	digest := e.digest[:min(12, len(e.digest))]
	return fmt.Sprintf("ollama %s %s dim=%d ctx=%d query=%q document=%q", e.options.Model, digest, e.dimension, e.options.Context, e.prefixes.Query, e.prefixes.Document)
}

// Count estimates the number of tokens in a text, rather too many than too few,
// for retrieval.ChunkOptions.
func (e *Embedder) Count(text string) int {
	ascii := 0
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			ascii++
		}
	}
	return (ascii+2)/3 + (len(text)-ascii+1)/2
}

// EmbedDocuments gives a vector for each text.
func (e *Embedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	return e.embed(ctx, e.prefixes.Document, texts)
}

// EmbedQuery gives a query's vector.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := e.embed(ctx, e.prefixes.Query, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// embed asks for the vectors in batches.
func (e *Embedder) embed(ctx context.Context, prefix string, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := min(e.options.Batch, len(texts))
		vectors, err := e.batch(ctx, prefix, texts[:n])
		if err != nil {
			return nil, err
		}
		out, texts = append(out, vectors...), texts[n:]
	}
	return out, nil
}

// batch asks for the vectors of some texts together, and one by one if a text
// among them is too long.
func (e *Embedder) batch(ctx context.Context, prefix string, texts []string) ([][]float32, error) {
	if !e.hopeless(texts) {
		inputs := make([]string, len(texts))
		for i, text := range texts {
			inputs[i] = prefix + fit(text)
		}
		vectors, err := e.request(ctx, inputs)
		if err == nil || !errors.Is(err, ErrTooLong) {
			return vectors, err
		}
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		var err error
		if out[i], err = e.long(ctx, prefix, fit(text)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// hopeless reports whether a text is so long that the server need not be asked:
// no tokenizer makes one token of more than 16 bytes on average.
func (e *Embedder) hopeless(texts []string) bool {
	for _, text := range texts {
		if len(text) > 16*e.options.Context {
			return true
		}
	}
	return false
}

// shortest is the length in bytes below which a text is not split further.
const shortest = 16

// long gives the vector of a text that may be too long: that of its parts,
// pooled by their length.
func (e *Embedder) long(ctx context.Context, prefix, text string) ([]float32, error) {
	if !e.hopeless([]string{text}) {
		vectors, err := e.request(ctx, []string{prefix + text})
		if err == nil {
			return vectors[0], nil
		}
		if !errors.Is(err, ErrTooLong) || len(text) < shortest {
			return nil, err
		}
	}
	if e.options.Refuse {
		return nil, fmt.Errorf("%w: %q… has %d bytes, and %s reads %d tokens; cut it smaller", ErrTooLong, firstWords(text), len(text), e.options.Model, e.options.Context)
	}
	at := middle(text)
	var pooled []float32
	for _, part := range []string{text[:at], text[at:]} {
		v, err := e.long(ctx, prefix, part)
		if err != nil {
			return nil, err
		}
		if pooled == nil {
			pooled = make([]float32, len(v))
		}
		if len(v) != len(pooled) {
			return nil, fmt.Errorf("%s gave vectors of %d and of %d numbers", e.options.Model, len(pooled), len(v))
		}
		for i, x := range v {
			pooled[i] += x * float32(len(part)) / float32(len(text))
		}
	}
	ollama.Normalize(pooled)
	return pooled, nil
}

// middle is where a text is best split: near its middle, at the end of a
// paragraph, a sentence or a word if there is one, else between two characters.
func middle(text string) int {
	from, to := len(text)/4, len(text)*3/4
	best, worth := -1, 0
	for i, r := range text {
		if i <= from || i >= to {
			continue
		}
		w := 1
		switch before, _ := utf8.DecodeLastRuneInString(text[:i]); {
		case before == '\n':
			w = 4
		case strings.ContainsRune(".!?。！？", before):
			w = 3
		case unicode.IsSpace(r):
			w = 2
		}
		if w > worth || w == worth && abs(i-len(text)/2) < abs(best-len(text)/2) {
			best, worth = i, w
		}
	}
	if best < 0 { // a text of a few characters
		_, best = utf8.DecodeRuneInString(text)
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// fit makes a text fit to send: valid UTF-8, and not blank, of which a server
// makes no vector.
func fit(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return "."
	}
	return text
}

func firstWords(text string) string {
	if r := []rune(text[:min(len(text), 200)]); len(r) > 40 {
		return string(r[:40])
	}
	return text
}

func (e *Embedder) request(ctx context.Context, inputs []string) ([][]float32, error) {
	options := map[string]any{"num_ctx": e.options.Context}
	for k, v := range e.options.Settings {
		options[k] = v
	}
	vectors, err := e.client.Embed(ctx, e.options.Model, inputs, e.keep, options)
	if err != nil {
		return nil, fmt.Errorf("embedding with %s: %w", e.options.Model, err)
	}
	for _, v := range vectors {
		if e.dimension > 0 && len(v) != e.dimension {
			return nil, fmt.Errorf("%s gave a vector of %d numbers; it had %d when it was opened: was the model replaced?", e.options.Model, len(v), e.dimension)
		}
	}
	return vectors, nil
}
