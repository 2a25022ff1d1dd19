package encoder

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func cosine(a, b []float32) float64 {
	var dot float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
	}
	return dot // of vectors of length 1
}

// distance is the largest difference of two elements.
func distance(a, b []float32) float64 {
	var d float64
	for i := range a {
		d = max(d, math.Abs(float64(a[i]-b[i])))
	}
	return d
}

func TestEmbedder(t *testing.T) {
	e := NewEmbedder(minilmWith(t, available()[0]))
	if e.Dimension() != 384 {
		t.Errorf("Dimension = %d, want 384", e.Dimension())
	}
	if id := e.Identity(); !strings.HasPrefix(id, "all-MiniLM-L6-v2@") || !strings.HasSuffix(id, "/mean") {
		t.Errorf("Identity = %q", id)
	}
	texts := []string{
		"How long is the warranty?",
		"The guarantee lasts for two years.",
		"Bananas are yellow.",
		"", " \n", "\x00\xff",
		strings.Repeat("a, ", 300), // two windows
	}
	vectors, err := e.EmbedDocuments(context.Background(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		if len(v) != 384 || math.Abs(cosine(v, v)-1) > 1e-5 {
			t.Errorf("%.20q: %d floats of length %g", texts[i], len(v), math.Sqrt(cosine(v, v)))
		}
		query, err := e.EmbedQuery(context.Background(), texts[i])
		if err != nil {
			t.Fatal(err)
		}
		if cosine(v, query) < 0.99999 {
			t.Errorf("%.20q: the query has another vector than the document", texts[i])
		}
	}
	if near, far := cosine(vectors[0], vectors[1]), cosine(vectors[0], vectors[2]); near < far+0.3 {
		t.Errorf("the warranty is at %.2f from the guarantee and %.2f from bananas", near, far)
	}
	if !slices.Equal(vectors[3], vectors[4]) || !slices.Equal(vectors[3], vectors[5]) {
		t.Error("texts without tokens have different vectors")
	}
	if none, err := e.EmbedDocuments(context.Background(), nil); err != nil || len(none) != 0 {
		t.Errorf("no texts: %v, %v", none, err)
	}
}

// The vector of a long text is the mean of its windows', so all of it counts.
func TestLongTextIsNotCut(t *testing.T) {
	m, _ := goldenModel(t, "random3", available()[0]) // windows of 46 tokens
	e := NewEmbedder(m)
	first := strings.Repeat("c ", 46)
	second := strings.Repeat("m ", 46)
	vectors, err := e.EmbedDocuments(context.Background(), []string{first, second, first + second})
	if err != nil {
		t.Fatal(err)
	}
	if d := distance(vectors[0], vectors[1]); d < 0.01 {
		t.Fatalf("the two windows are too near each other to tell: %g", d)
	}
	want := make([]float32, e.Dimension())
	for i := range want {
		want[i] = vectors[0][i] + vectors[1][i]
	}
	normalise(want)
	if d := distance(vectors[2], want); d > 1e-5 {
		t.Errorf("the vector of a text of two windows is %g from the mean of theirs", d)
	}
}

func TestWindows(t *testing.T) {
	e := NewEmbedder(minilmWith(t, available()[0]))
	for _, c := range []struct{ tokens, want int }{{0, 1}, {1, 1}, {510, 1}, {511, 2}, {1020, 2}, {1021, 3}} {
		windows := e.windows(0, strings.Repeat("a ", c.tokens), "", false)
		total := 0
		for _, w := range windows {
			if len(w.ids) > 512 || w.ids[0] != 101 || w.ids[len(w.ids)-1] != 102 {
				t.Errorf("%d tokens: a window of %d ids, from %d to %d", c.tokens, len(w.ids), w.ids[0], w.ids[len(w.ids)-1])
			}
			total += len(w.ids) - 2
		}
		if len(windows) != c.want || total != c.tokens {
			t.Errorf("%d tokens: %d windows with %d tokens, want %d windows", c.tokens, len(windows), total, c.want)
		}
	}
}

// TestLongQuery counts what is embedded of a question: no more than one window of
// a very long one, and all of any other.
func TestLongQuery(t *testing.T) {
	e := NewEmbedder(minilmWith(t, available()[0]))
	room := e.model.config.MaxTokens - 2
	for name, text := range map[string]string{
		"one word":    strings.Repeat("a", 32<<10),
		"words":       strings.Repeat("deposit for a bike, ", 32<<10/20),
		"marks":       strings.Repeat("?!", 16<<10),
		"codes":       strings.Repeat("ERR-5172 ", 32<<10/9),
		"ideographs":  strings.Repeat("問", 32<<10/3),
		"just enough": strings.Repeat("? ", longQuery/2),
	} {
		tokens := e.model.tokenizer.Tokenize(text)
		windows := e.windows(0, text, "", true)
		if got, want := int(windows[0].weight), min(len(tokens), room); len(windows) != 1 || got != want {
			t.Errorf("%s: %d windows, the first with %d tokens, want 1 with %d of %d", name, len(windows), got, want, len(tokens))
		}
	}
	middle := strings.Repeat(" the motor overheats", 400)
	text := "How is a deposit paid back?" + middle + " Who pays the deposit?"
	ids := e.windows(0, text, "", true)[0].ids
	for at, want := range map[int]string{1: "how", len(ids) - 3: "deposit"} {
		if got := e.model.tokenizer.Tokenize(want)[0].ID; ids[at] != got {
			t.Errorf("token %d is %d, want %q, %d", at, ids[at], want, got)
		}
	}
	// What a long question is about is at its ends.
	long, err := e.EmbedQuery(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	all, err := e.EmbedDocuments(t.Context(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	if distance(long, all[0]) < 1e-4 {
		t.Error("a very long question is embedded whole")
	}
	short := strings.Repeat("?", longQuery-1)
	whole, err := e.EmbedDocuments(t.Context(), []string{short})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.EmbedQuery(t.Context(), short); err != nil || distance(got, whole[0]) > 1e-5 {
		t.Errorf("a question just short of very long is not embedded whole: %v", err)
	}
}

func TestEmbedCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewEmbedder(minilmWith(t, available()[0])).EmbedQuery(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// Pooling by the first token and prefixes, as bge and e5 need them.
func TestPoolingAndPrefixes(t *testing.T) {
	config := strings.Replace(readTestdata(t, "random3/config.json"), "{", `{"askback": {"name": "small", "pooling": "cls",
		"query_prefix": "ab ", "document_prefix": "c "},`, 1)
	m, err := Load(fstest.MapFS{
		"config.json":       {Data: []byte(config)},
		"vocab.txt":         {Data: []byte(readTestdata(t, "random3/vocab.txt"))},
		"model.safetensors": {Data: []byte(readTestdata(t, "random3/model.safetensors"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	e := NewEmbedder(m)
	if id := e.Identity(); !strings.HasPrefix(id, "small@") || !strings.HasSuffix(id, "/cls") {
		t.Errorf("Identity = %q", id)
	}
	ids := func(text string) []int32 {
		seq := []int32{m.Tokenizer().CLS()}
		for _, token := range m.Tokenizer().Tokenize(text) {
			seq = append(seq, token.ID)
		}
		return append(seq, m.Tokenizer().SEP())
	}
	query, err := e.EmbedQuery(context.Background(), "d")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := e.EmbedDocuments(context.Background(), []string{"d"})
	if err != nil {
		t.Fatal(err)
	}
	for text, got := range map[string][]float32{"ab d": query, "c d": documents[0]} {
		want := slices.Clone(mustForward(t, m, []Sequence{{IDs: ids(text)}}, Options{})[0][:64])
		normalise(want)
		if cosine(got, want) < 0.99999 {
			t.Errorf("%q: the vector is not the first token's state", text)
		}
	}
}
