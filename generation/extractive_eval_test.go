package generation_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/generation/generatortest"
	"github.com/askback/askback/internal/encoder"
	"github.com/askback/askback/retrieval"
)

// authored is a case of testdata/cases.jsonl.
type authored struct {
	ID       string
	History  []conversation.Message
	Question string
	Passages []struct{ ID, Title, Text, Answer string }
}

func (c authored) request() generation.Request {
	r := generation.Request{Question: c.Question, History: c.History}
	for _, p := range c.Passages {
		r.Passages = append(r.Passages, retrieval.Passage{ID: p.ID, Title: p.Title, Text: p.Text})
	}
	return r
}

// answerable says whether a passage holds the answer.
func (c authored) answerable() bool {
	return slices.ContainsFunc(c.Passages, func(p struct{ ID, Title, Text, Answer string }) bool { return p.Answer != "" })
}

// hit says whether the answer quotes words that were marked as the answer.
func (c authored) hit(a *generation.Answer) bool {
	for _, p := range c.Passages {
		for _, q := range a.Citations {
			if p.Answer != "" && q.Passage == p.ID && strings.Contains(q.Quote, p.Answer) {
				return true
			}
		}
	}
	return false
}

func cases(tb testing.TB) (all []authored) {
	f, err := os.Open("testdata/cases.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var c authored
		if err := d.Decode(&c); err != nil {
			tb.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func embedder(tb testing.TB) *encoder.Embedder {
	m, err := encoder.MiniLM()
	if err != nil {
		tb.Fatal(err)
	}
	return encoder.NewEmbedder(m)
}

// The figures with the embedded encoder, held a little under what was measured.
func TestExtractiveQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a hundred cases with the encoder")
	}
	g := generation.Extractive{Embedder: embedder(t)}
	var with, found, hits, words, without, refused float64
	for _, c := range cases(t) {
		a, err := generatortest.Collect(t.Context(), g, c.request())
		if err != nil {
			t.Fatal(err)
		}
		if err := generatortest.Check(c.request(), a); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
		switch {
		case !c.answerable():
			without++
			if !a.Found {
				refused++
			}
		default:
			with++
			if a.Found {
				found++
				words += float64(len(strings.Fields(a.Text)))
			}
			if c.hit(a) {
				hits++
			}
		}
	}
	t.Logf("answerable: %.0f %% answered, %.0f %% with the words marked as the answer, %.1f words on average; unanswerable: %.0f %% refused",
		100*found/with, 100*hits/with, words/found, 100*refused/without)
	for _, f := range []struct {
		name             string
		got, least, most float64
	}{
		{"answered", found / with, 0.80, 1},
		{"with the marked words", hits / with, 0.68, 1},
		{"words", words / found, 15, 45},
		{"refused", refused / without, 0.45, 1},
	} {
		if f.got < f.least || f.got > f.most {
			t.Errorf("%s: %.3f, want %g to %g", f.name, f.got, f.least, f.most)
		}
	}
}

func BenchmarkExtractive(b *testing.B) {
	r := cases(b)[0].request()
	for i := 0; len(r.Passages) < retrieval.DefaultLimit; i++ {
		r.Passages = append(r.Passages, cases(b)[i+1].request().Passages...)
	}
	r.Passages = r.Passages[:retrieval.DefaultLimit]
	for _, bench := range []struct {
		name string
		g    generation.Extractive
	}{
		{"encoder", generation.Extractive{Embedder: embedder(b)}},
		{"without encoder", generation.Extractive{Embedder: bag{}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := generatortest.Collect(b.Context(), bench.g, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
