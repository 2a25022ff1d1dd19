package tinygguf

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Script says what follows each piece of text, and how probable it is. A reply
// begins with what follows Start; End, or a piece that nothing follows, ends it.
type Script map[string]map[string]float64

// Say is the script that says the pieces one after the other, each a token.
// Each may stand once only.
func Say(pieces ...string) Script {
	s, last := Script{}, Start
	for _, p := range pieces {
		if _, twice := s[p]; twice || p == last {
			panic(fmt.Sprintf("tinygguf: the piece %q stands twice in a script", p))
		}
		s[last] = map[string]float64{p: 1}
		last = p
	}
	s[last] = map[string]float64{End: 1}
	return s
}

// Repeat is the script that says a piece without end.
func Repeat(piece string) Script {
	return Script{Start: {piece: 1}, piece: {piece: 1}}
}

// sure is the logit of a certain token; all that the script does not name have 0.
const sure = 60

// Scripted gives a model that follows the script whatever its prompt says. It
// looks at the last token alone: the embeddings are one-hot, attention and
// feed-forward weights are zero, and the output weights are the script.
func Scripted(c Config, s Script) *File {
	words := slices.Sorted(maps.Keys(s))
	for _, next := range s {
		words = append(words, slices.Sorted(maps.Keys(next))...)
	}
	words = append(words, c.Words...)
	slices.Sort(words)
	v := newVocabulary(words)
	n := len(v.tokens)
	c.Dim = (n + 63) / 64 * 64
	c.Heads, c.KVHeads = c.Dim/64, c.Dim/64
	c = c.filled()
	f := header(c, v)
	embeddings, output := make([]float32, c.Dim*n), make([]float32, c.Dim*n)
	// The last norm makes a one-hot vector's one the root of its length.
	weight := func(p float64) float32 { return float32((sure + math.Log(p)) / math.Sqrt(float64(c.Dim))) }
	for t, word := range v.tokens {
		embeddings[t*c.Dim+t] = 1
		next, ok := s[word]
		if !ok {
			next = map[string]float64{End: 1}
		}
		for piece, p := range next {
			output[v.index[piece]*c.Dim+t] = weight(p)
		}
	}
	zeros := func(name string, dims ...int) { f.add(name, filled(0, dims...), dims...) }
	ones := func(name string, n int) { f.add(name, filled(1, n), n) }
	f.add("token_embd.weight", embeddings, c.Dim, n)
	ones("output_norm.weight", c.Dim)
	f.add("output.weight", output, c.Dim, n)
	for l := range c.Layers {
		b := fmt.Sprintf("blk.%d.", l)
		ones(b+"attn_norm.weight", c.Dim)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			zeros(b+name+".weight", c.Dim, c.Dim)
		}
		ones(b+"ffn_norm.weight", c.Dim)
		zeros(b+"ffn_gate.weight", c.Dim, c.FF)
		zeros(b+"ffn_up.weight", c.Dim, c.FF)
		zeros(b+"ffn_down.weight", c.FF, c.Dim)
	}
	return f
}
