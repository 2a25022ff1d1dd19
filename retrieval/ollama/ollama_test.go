package ollama_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/ollama"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counts is a fake's vector: how many a, b and c a text has; texts of more than
// 64 bytes are too long.
func counts(text string) []float32 {
	if len(text) > 64 {
		return nil
	}
	return []float32{float32(strings.Count(text, "a")), float32(strings.Count(text, "b")), 1e-3}
}

func open(t *testing.T, f *ollamatest.Fake, o ollama.Options) *ollama.Embedder {
	t.Helper()
	o.Host, o.HTTP, o.Model = f.URL, f.HTTP, "fake"
	e, err := ollama.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestBatches(t *testing.T) {
	f := ollamatest.NewFake(t, ollamatest.Turn{})
	f.Vector = counts
	e := open(t, f, ollama.Options{Batch: 3, Prefixes: &ollama.Prefixes{Query: "q:", Document: "d:"}})
	if e.Dimension() != 3 || !strings.Contains(e.Identity(), "fake 0123456789ab dim=3") {
		t.Errorf("dimension %d, identity %s", e.Dimension(), e.Identity())
	}
	vectors, err := e.EmbedDocuments(t.Context(), []string{"a", "b", "", "\xff", "b b"})
	if err != nil || len(vectors) != 5 || vectors[0][0] < 0.99 || vectors[4][1] < 0.99 {
		t.Fatalf("%v, error %v", vectors, err)
	}
	if _, err := e.EmbedQuery(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"probe"}, {"d:a", "d:b", "d:."}, {"d:\uFFFD", "d:b b"}, {"q:a"}}
	if got := f.Embedded(); !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if vectors, err := e.EmbedDocuments(t.Context(), nil); err != nil || len(vectors) != 0 {
		t.Errorf("no texts give %v, error %v", vectors, err)
	}
}

// A text that is too long is split where it hurts least, and all of it counts.
func TestLongTexts(t *testing.T) {
	f := ollamatest.NewFake(t, ollamatest.Turn{})
	f.Vector = counts
	e := open(t, f, ollama.Options{})
	for name, text := range map[string]string{
		"sentences":      strings.Repeat("a a a a. ", 10) + strings.Repeat("b b b b. ", 10),
		"without spaces": strings.Repeat("a", 150) + strings.Repeat("b", 150),
		"Japanese":       strings.Repeat("休暇a。", 40) + strings.Repeat("有給b。", 40),
		"huge":           strings.Repeat("a b ", 40_000), // not worth asking for
	} {
		vectors, err := e.EmbedDocuments(t.Context(), []string{"a", text})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v := vectors[1]; math.Abs(float64(v[0])-math.Sqrt(.5)) > .1 || math.Abs(float64(v[1])-math.Sqrt(.5)) > .1 {
			t.Errorf("%s: %v; both halves should weigh the same", name, v)
		}
		if vectors[0][0] < 0.99 {
			t.Errorf("%s: the short text beside it gives %v", name, vectors[0])
		}
	}
	for _, texts := range f.Embedded() {
		for _, text := range texts {
			if strings.ContainsRune(text, '\uFFFD') {
				t.Fatalf("a character was cut in two: %q", text)
			}
		}
	}
	e = open(t, f, ollama.Options{Refuse: true})
	if _, err := e.EmbedDocuments(t.Context(), []string{"a", "The leave policy " + strings.Repeat("a", 100)}); !errors.Is(err, ollama.ErrTooLong) || !strings.Contains(err.Error(), "The leave policy") {
		t.Errorf("error %v, want one that names the text", err)
	}
	never := ollamatest.NewFake(t, ollamatest.Turn{})
	never.Vector = func(text string) []float32 {
		if text == "probe" {
			return []float32{1, 2}
		}
		return nil
	}
	e = open(t, never, ollama.Options{})
	if _, err := e.EmbedQuery(t.Context(), strings.Repeat("a", 100)); !errors.Is(err, ollama.ErrTooLong) {
		t.Errorf("error %v", err)
	}
}

func TestFaults(t *testing.T) {
	f := ollamatest.NewFake(t, ollamatest.Turn{})
	f.Vector = func(text string) []float32 {
		switch text {
		case "zero":
			return []float32{0, 0}
		case "other":
			return []float32{1, 0, 0}
		}
		return []float32{1, 0}
	}
	e := open(t, f, ollama.Options{})
	for text, says := range map[string]string{"zero": "a vector of length 0", "other": "3 numbers; it had 2"} {
		if _, err := e.EmbedQuery(t.Context(), text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v", text, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.EmbedQuery(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	f.Restart(t)
	if _, err := e.EmbedQuery(t.Context(), "x"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	for _, o := range []ollama.Options{{}, {Model: "fake", KeepAlive: "x"}, {Model: "fake", Host: "ftp://x"}} {
		if _, err := ollama.New(t.Context(), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if _, err := ollama.New(t.Context(), ollama.Options{Host: f.URL, HTTP: f.HTTP, Model: "missing"}); !errors.Is(err, ollama.ErrNoModel) {
		t.Errorf("error %v", err)
	}
	f.Close()
	if _, err := e.EmbedQuery(t.Context(), "x"); !errors.Is(err, ollama.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
}

func TestKnownPrefixes(t *testing.T) {
	s := ollamatest.Start(t)
	model := s.Model(t, "nomic-embed-text", tinygguf.Random(tinygguf.Config{Pooling: 1, Context: 256}))
	e, err := ollama.New(t.Context(), ollama.Options{Host: s.URL, HTTP: s.HTTP, Model: model, KeepAlive: "300"})
	if err != nil {
		t.Fatal(err)
	}
	if e.Dimension() != 64 || !strings.Contains(e.Identity(), `query="search_query: "`) {
		t.Errorf("dimension %d, identity %s", e.Dimension(), e.Identity())
	}
	checkVectors(t, e)
}

// checkVectors is what a real server's vectors must do, whatever their meaning.
func checkVectors(t *testing.T, e *ollama.Embedder) {
	texts := []string{"Contractors have no annual leave.", "Employees have 28 days.", "", strings.Repeat("a long text. ", 100)}
	vectors, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.EmbedDocuments(t.Context(), texts[:1])
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if len(v) != e.Dimension() || math.Abs(sum-1) > 1e-4 {
			t.Errorf("text %d: %d numbers of length %v", i, len(v), math.Sqrt(sum))
		}
	}
	cosine := 0.0
	for i, x := range again[0] {
		cosine += float64(x) * float64(vectors[0][i])
	}
	if cosine < 0.999 {
		t.Errorf("the same text gives another vector: cosine %v", cosine)
	}
	index, err := local.Open(t.Context(), local.Options{Embedder: e, Identity: e.Identity()})
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	for i, text := range texts[:2] {
		id := fmt.Sprint(i)
		if err := index.Replace(t.Context(), id, "1", []retrieval.Passage{{ID: id, Document: id, Title: "Leave", Source: id, Text: text}}); err != nil {
			t.Fatal(err)
		}
	}
	found, err := index.Retrieve(t.Context(), retrieval.Query{Texts: []string{"contractors"}})
	if err != nil || len(found) == 0 || found[0].ID != "0" {
		t.Errorf("found %+v, error %v", found, err)
	}
}
