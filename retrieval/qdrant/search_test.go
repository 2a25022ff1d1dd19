package qdrant_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/qdrant"
)

// corpus makes documents of random words. Every passage has another length, so
// that no two weigh a word alike, and on average they are as long as
// AverageLength reckons, so that both indexes do.
func corpus(r *rand.Rand) []retrieval.Chunked {
	lengths := r.Perm(2*qdrant.AverageLength - 1)
	var all []retrieval.Chunked
	for len(lengths) > 0 {
		c := retrieval.Chunked{Document: fmt.Sprintf("d%02d.md", len(all)), Fingerprint: "1"}
		n := min(1+r.IntN(4), len(lengths))
		for p, length := range lengths[:n] {
			var words []string
			for range length + 1 {
				words = append(words, word(r.ExpFloat64()*40))
			}
			c.Passages = append(c.Passages, retrieval.Passage{ID: fmt.Sprintf("%s/%d", c.Document, p), Document: c.Document, Source: c.Document,
				Text: strings.Join(words, " "), Metadata: map[string]string{"parity": fmt.Sprint(len(all) % 2)}})
		}
		lengths = lengths[n:]
		all = append(all, c)
	}
	return all
}

// word makes a word that no stemmer changes and no list of stop words holds.
func word(x float64) string {
	n := int(x)
	return string([]byte{'z', byte('a' + n%20), 'q', byte('a' + n/20%20), 'k'})
}

// vectors embeds by the hash of the text: no two passages are as near as each
// other to a query.
type vectors struct{ dim int }

func (v vectors) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	r := rand.New(rand.NewPCG(h, 1))
	out := make([]float32, v.dim)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out, nil
}

func (v vectors) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, text := range texts {
		x, _ := v.EmbedQuery(ctx, text)
		out = append(out, x)
	}
	return out, nil
}

// The local index and Qdrant give the same passages in the same order with the
// same scores.
func TestRanksAsLocal(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, seed))
	embedder := vectors{48}
	o := ownCollection(t, qdrant.Options{Embedder: embedder})
	remote := open(t, o)
	here, err := local.Open(t.Context(), local.Options{Embedder: embedder})
	if err != nil {
		t.Fatal(err)
	}
	documents := corpus(r)
	put(t, remote, documents...)
	if err := here.ReplaceAll(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		q := retrieval.Query{Limit: 1 + r.IntN(12)}
		for range 1 + i%3 {
			q.Texts = append(q.Texts, strings.Join([]string{word(r.Float64() * 100), word(r.Float64() * 100), word(r.Float64() * 30)}, " "))
		}
		if i%4 == 0 {
			q.Filter = map[string]string{"parity": "1"}
		}
		want, err := here.Explain(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := remote.Explain(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, func(a, b retrieval.Hit) bool {
			return a.ID == b.ID && a.Text == b.Text && math.Abs(a.Score-b.Score) < 1e-5 && math.Abs(a.Cosine-b.Cosine) < 1e-5 && math.Abs(a.BM25-b.BM25) < 1e-3
		}) {
			t.Errorf("seed %d, query %d, %q\nQdrant", seed, i, q.Texts)
			for _, h := range got {
				t.Logf("  %s score %.6f cosine %.6f BM25 %.4f", h.ID, h.Score, h.Cosine, h.BM25)
			}
			t.Log("local")
			for _, h := range want {
				t.Logf("  %s score %.6f cosine %.6f BM25 %.4f", h.ID, h.Score, h.Cosine, h.BM25)
			}
		}
	}
}

// A threshold is the least similarity, or the greatest distance.
func TestThreshold(t *testing.T) {
	for _, distance := range []qdrant.Distance{qdrant.Cosine, qdrant.Dot, qdrant.Euclid, qdrant.Manhattan} {
		t.Run(distance.String(), func(t *testing.T) {
			t.Parallel()
			testThreshold(t, distance)
		})
	}
}

func testThreshold(t *testing.T, distance qdrant.Distance) {
	embedder := vectors{8}
	o := ownCollection(t, qdrant.Options{Embedder: embedder, Layout: qdrant.Layout{Distance: distance}})
	s := open(t, o)
	put(t, s, corpus(rand.New(rand.NewPCG(1, 1)))...)
	const question = "zaqak zbqak"
	query, _ := embedder.EmbedQuery(t.Context(), question)
	measure := func(text string) float64 {
		v, _ := embedder.EmbedQuery(t.Context(), text)
		var dot, vv, qq, euclid, manhattan float64
		for i := range v {
			a, b := float64(v[i]), float64(query[i])
			dot, vv, qq, euclid, manhattan = dot+a*b, vv+a*a, qq+b*b, euclid+(a-b)*(a-b), manhattan+math.Abs(a-b)
		}
		return map[qdrant.Distance]float64{qdrant.Cosine: dot / math.Sqrt(vv*qq), qdrant.Dot: dot, qdrant.Euclid: math.Sqrt(euclid), qdrant.Manhattan: manhattan}[distance]
	}
	falls := distance == qdrant.Cosine || distance == qdrant.Dot
	search := func(mode qdrant.Mode, threshold *float64) []retrieval.Hit {
		t.Helper()
		hits, err := s.Search(t.Context(), qdrant.Search{Query: retrieval.Query{Texts: []string{question}, Limit: 100}, Mode: mode, Threshold: threshold})
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	all := search(qdrant.Dense, nil)
	for i := 1; i < len(all); i++ {
		if a, b := measure(all[i-1].Text), measure(all[i].Text); falls && a < b-1e-5 || !falls && a > b+1e-5 {
			t.Fatalf("%v: place %d is %v, place %d is %v", distance, i, a, i+1, b)
		}
	}
	const want = 7
	threshold := (measure(all[want-1].Text) + measure(all[want].Text)) / 2
	for _, mode := range []qdrant.Mode{qdrant.Dense, qdrant.Hybrid, qdrant.Words} {
		got := search(mode, &threshold)
		if mode != qdrant.Words && len(got) != want || mode == qdrant.Words && (len(got) == 0 || len(got) > want) {
			t.Errorf("%v, mode %d: %d passages within %v, want %d", distance, mode, len(got), threshold, want)
		}
		for _, h := range got {
			if m := measure(h.Text); falls && m < threshold || !falls && m > threshold {
				t.Errorf("%v, mode %d: %s is given at %v, threshold %v", distance, mode, h.ID, m, threshold)
			}
		}
	}
}

func TestModes(t *testing.T) {
	s := open(t, qdrant.Options{})
	put(t, s, document("a.md", "The door is open."), document("b.md", "The window is closed."), document("c.md", "Doors"))
	for _, test := range []struct {
		mode qdrant.Mode
		text string
		want string
	}{
		{qdrant.Words, "door", "a.md/1 c.md/1"}, // sorted
		{qdrant.Words, "the is", ""},
		{qdrant.Words, "nothing of the kind", ""},
		{qdrant.Dense, "door", "a.md/1 b.md/1 c.md/1"},
		{qdrant.Hybrid, "door", "a.md/1 b.md/1 c.md/1"},
		{qdrant.Hybrid, "the is", "a.md/1 b.md/1 c.md/1"},
	} {
		hits, err := s.Search(t.Context(), qdrant.Search{Query: retrieval.Query{Texts: []string{test.text}}, Mode: test.mode})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.ID)
		}
		slices.Sort(ids)
		if got := strings.Join(ids, " "); got != test.want {
			t.Errorf("mode %d, %q: %s, want %s", test.mode, test.text, got, test.want)
		}
	}
	if _, err := s.Search(t.Context(), qdrant.Search{Query: retrieval.Query{Texts: []string{"door"}}, Mode: 7}); err == nil {
		t.Error("a mode that does not exist is taken")
	}
}

func TestPerDocument(t *testing.T) {
	s := open(t, qdrant.Options{PerDocument: 2})
	var many []string
	for i := range 300 { // more than are looked at first
		many = append(many, fmt.Sprintf("annual leave of year %d", i))
	}
	put(t, s, document("leave.md", many...), document("other.md", "leave a message", "leave the house"), document("third.md", "nothing"))
	for per, want := range map[int]map[string]int{
		0: {"leave.md": 2, "other.md": 2, "third.md": 1}, // the store's
		1: {"leave.md": 1, "other.md": 1, "third.md": 1},
	} {
		hits, err := s.Search(t.Context(), qdrant.Search{Query: retrieval.Query{Texts: []string{"annual leave"}, Limit: 5}, PerDocument: per})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		for _, h := range hits {
			got[h.Document]++
		}
		for document, n := range want {
			if got[document] != n {
				t.Errorf("%d for each document gives %v, want %v", per, got, want)
			}
		}
	}
}

// Every layout of a collection finds the same.
func TestLayouts(t *testing.T) {
	for _, layout := range []qdrant.Layout{
		{Quantization: qdrant.Scalar}, {Quantization: qdrant.Binary}, {OnDisk: true}, {Quantization: qdrant.Binary, OnDisk: true, Shards: 1, Replicas: 1},
	} {
		t.Run(fmt.Sprintf("%+v", layout), func(t *testing.T) {
			t.Parallel()
			o := ownCollection(t, qdrant.Options{Embedder: vectors{256}, Layout: layout})
			s := open(t, o)
			documents := corpus(rand.New(rand.NewPCG(2, 2)))
			put(t, s, documents...)
			for _, d := range documents[:5] {
				if got := find(t, s, retrieval.Query{Texts: []string{d.Passages[0].Text}, Limit: 1}); got != d.Passages[0].ID {
					t.Errorf("%+v: the text of %s finds %s", layout, d.Passages[0].ID, got)
				}
			}
		})
	}
}

// Odd filters find nothing and break nothing.
func TestFilterKeys(t *testing.T) {
	s := open(t, qdrant.Options{})
	d := document("a.md", "alpha")
	d.Passages[0].Metadata = map[string]string{"a.b": "c", `q"[0]`: "=", "größe": "çok", "": "empty key", "a": "b=c"}
	put(t, s, d)
	for key, value := range d.Passages[0].Metadata {
		if got := find(t, s, retrieval.Query{Texts: []string{"alpha"}, Filter: map[string]string{key: value}}); got != "a.md/1" {
			t.Errorf("%q = %q finds %q", key, value, got)
		}
	}
	for _, filter := range []map[string]string{{"a=b": "c"}, {"a": "b"}, {"a": "caf\xe9"}, {"caf\xe9": ""}, {"a.b": "c", "a": "c"}} {
		if got := find(t, s, retrieval.Query{Texts: []string{"alpha"}, Filter: filter}); got != "" {
			t.Errorf("%q finds %q", filter, got)
		}
	}
}
