package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/askback/askback/retrieval"
)

const (
	dim      = 384
	seed     = 7
	clusters = 2000
	perDoc   = 20     // passages in a document
	words    = 60     // in a passage
	wordKind = 50_000 // different words
)

// corpus makes passages and queries, each from its number alone, so that none
// need be kept: vectors in clusters, texts of words of rank r with weight 1/r.
type corpus struct {
	n       int
	centres [][]float32
}

func newCorpus(n int) *corpus {
	c := &corpus{n: n}
	r := rand.New(rand.NewPCG(seed, 0))
	for range clusters {
		c.centres = append(c.centres, normal(r))
	}
	return c
}

func normal(r *rand.Rand) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return unit(v)
}

func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
	return v
}

// vector gives the vector of a passage, or from number n on of a query: the
// centre of its cluster and as much noise, so that the cosine of two in a
// cluster is about one half.
func (c *corpus) vector(i int) []float32 {
	r := rand.New(rand.NewPCG(seed+1, uint64(i)))
	v := normal(r)
	for k, x := range c.centres[r.IntN(clusters)] {
		v[k] += x
	}
	return unit(v)
}

// text gives the text of a passage; its first word is its number.
func (c *corpus) text(i int) string {
	r := rand.New(rand.NewPCG(seed+2, uint64(i)))
	zipf := rand.NewZipf(r, 1.1, 2, wordKind-1)
	var b strings.Builder
	spell(&b, uint64(i))
	b.WriteByte('x')
	for range words {
		b.WriteByte(' ')
		spell(&b, zipf.Uint64())
	}
	return b.String()
}

// question gives the text of a query, of six words.
func (c *corpus) question(i int) string {
	return strings.Join(strings.Fields(c.text(i))[1:7], " ")
}

const syllables = "bacedifoguhakelimonurasetivozupy"

// spell writes a number in sixteen syllables.
func spell(b *strings.Builder, n uint64) {
	for {
		b.WriteString(syllables[2*(n%16) : 2*(n%16)+2])
		if n /= 16; n == 0 {
			return
		}
	}
}

// number reads the number that a text begins with.
func number(text string) int {
	first, _, _ := strings.Cut(text, " ")
	n, scale := 0, 1
	for i := 0; i+2 < len(first); i += 2 {
		n += scale * strings.Index(syllables, first[i:i+2]) / 2
		scale *= 16
	}
	return n
}

// document gives a document and its passages.
func (c *corpus) document(d int) retrieval.Chunked {
	var b strings.Builder
	spell(&b, uint64(d))
	out := retrieval.Chunked{Document: b.String(), Fingerprint: "1"}
	for i := d * perDoc; i < min((d+1)*perDoc, c.n); i++ {
		text := c.text(i)
		id, _, _ := strings.Cut(text, " ")
		out.Passages = append(out.Passages, retrieval.Passage{ID: id, Document: out.Document, Source: out.Document, Text: text})
	}
	return out
}

// nearest gives the numbers of the ten passages nearest to each query, exactly.
func (c *corpus) nearest(queries int) [][]int {
	type near struct {
		i      int
		cosine float32
	}
	vectors := make([][]float32, queries)
	for q := range vectors {
		vectors[q] = c.vector(c.n + q)
	}
	found := make([][]near, queries)
	var mu sync.Mutex
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			mine := make([][]near, queries)
			for i := w; i < c.n; i += workers {
				v := c.vector(i)
				for q, query := range vectors {
					x := dot(query, v)
					if len(mine[q]) == 10 && x <= mine[q][9].cosine {
						continue
					}
					mine[q] = append(mine[q], near{i, x})
					slices.SortFunc(mine[q], func(a, b near) int {
						if a.cosine > b.cosine {
							return -1
						}
						return 1
					})
					mine[q] = mine[q][:min(10, len(mine[q]))]
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for q := range found {
				found[q] = append(found[q], mine[q]...)
			}
		})
	}
	wg.Wait()
	out := make([][]int, queries)
	for q, all := range found {
		slices.SortFunc(all, func(a, b near) int {
			if a.cosine > b.cosine {
				return -1
			}
			return 1
		})
		for _, x := range all[:10] {
			out[q] = append(out[q], x.i)
		}
	}
	return out
}

func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for i := 0; i+4 <= len(a) && i+4 <= len(b); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	return s0 + s1 + s2 + s3
}
