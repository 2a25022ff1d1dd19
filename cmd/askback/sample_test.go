package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/askback/askback/cmd/askback/sample"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/minilm"
)

var update = flag.Bool("update", false, "make the generated files anew")

// TestSampleVectors makes sure that the built-in vectors are those of the
// sample's passages as they are now; -update makes them.
func TestSampleVectors(t *testing.T) {
	embedder, err := minilm.New()
	if err != nil {
		t.Fatal(err)
	}
	var passages []retrieval.Passage
	for input, err := range inputs(t.Context(), sample.Documents, embedder, func(documents.Result) {}) {
		if err != nil {
			t.Fatal(err)
		}
		ps, err := input.Passages()
		if err != nil {
			t.Fatal(err)
		}
		passages = append(passages, ps...)
	}
	if *update {
		var texts []string
		for _, p := range passages {
			texts = append(texts, retrieval.EmbeddingText(p))
		}
		vectors, err := embedder.EmbedDocuments(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		by := map[string][]float32{}
		for i, p := range passages {
			by[p.ID] = vectors[i]
		}
		data, err := sample.EncodeVectors(embedder.Identity(), by)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("sample/vectors.bin", data, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	vectors, err := sample.Vectors(embedder.Identity())
	if err != nil {
		t.Fatal(err)
	}
	if len(vectors) != len(passages) {
		t.Errorf("%d vectors for %d passages", len(vectors), len(passages))
	}
	for _, p := range passages {
		if vectors[p.ID] == nil {
			t.Errorf("no vector for the passage %s (%s); run: go test ./cmd/askback -run TestSampleVectors -update", p.ID, p.Title)
		}
	}
	want, err := embedder.EmbedQuery(t.Context(), retrieval.EmbeddingText(passages[0]))
	if err != nil {
		t.Fatal(err)
	}
	var dot float64
	for i, x := range vectors[passages[0].ID] {
		dot += float64(x) * float64(want[i])
	}
	if dot < .999 {
		t.Errorf("the vector of %q is not the embedder's: cosine %.4f", passages[0].Title, dot)
	}
}

// TestWelcome holds the first screen to what it promises.
func TestWelcome(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"chat"}, streams{bytes.NewReader(nil), &out, &errOut})
	if code != exitAnswered {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	for _, want := range []string{"asks back", "sources", "Larkwheel", "Try", "/help"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("the first screen lacks %q:\n%s", want, out.String())
		}
	}
}
