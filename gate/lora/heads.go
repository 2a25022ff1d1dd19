package lora

import (
	"math"

	layers "github.com/askback/askback/internal/encoder/heads"
)

// The tags that a token may have, in the order of the tag head's outputs.
const (
	tagAnswer    = iota // in a passage: words that answer the question
	tagCondition        // in a passage: when or for whom the answer holds
	tagSettled          // in the dialogue: words that settle which answer is meant
	tagUnclear          // in the question: words that are unclear
	tagCount
)

// missing stands for a logit that does not exist, such as a second passage's.
const missing = -5

// heads are the small layers on top of the hidden states.
type heads struct {
	hidden, reading int
	tags            layers.Linear // a token's state -> 4 logits
	read            layers.Linear // means: plain, of answer, condition, settled -> a passage's reading
	passage         layers.Linear // a reading -> answers, live
	pair            layers.MLP    // two readings -> conflict
	gate1, gate2    layers.MLP
	signs1, signs2  layers.Linear // strongest logits of the other heads -> added to the gate's logit
}

// readHeads reads heads.safetensors for an encoder of that hidden size.
func readHeads(data []byte, hidden int) (*heads, error) {
	r := layers.Read(data)
	h := &heads{hidden: hidden}
	h.tags = r.Linear("tags", hidden, tagCount)
	h.read = r.Linear("read", 4*hidden, 0)
	h.reading = h.read.Out
	h.passage = r.Linear("passage", h.reading, 2)
	h.pair = r.MLP("pair", 3*h.reading, 1)
	h.gate1 = r.MLP("gate1", 4*hidden, 1)
	h.signs1 = r.Weights("gate1_signs", 2, 1)
	h.gate2 = r.MLP("gate2", 3*hidden+2*h.reading, 1)
	h.signs2 = r.Weights("gate2_signs", 7, 1)
	return h, r.Err()
}

// output is what the heads say about one input.
type output struct {
	gate    float64       // logit of the gate that the input is for
	tags    [][][]float32 // by segment: tagCount probabilities for each token
	passage [][2]float64  // by passage: logits of "answers" and "live"
	pair    [][]float64   // logit of "in conflict", symmetric
}

// apply runs the heads over the hidden states, one slice for each segment:
// the dialogue first, then the passages, if any. first tells for each segment
// from which token on its plain mean is taken: a passage's own begins after the
// dialogue that stands before it.
func (h *heads) apply(states [][]float32, first []int) output {
	d := h.hidden
	var out output
	segments := make([]pooled, len(states))
	for i, s := range states {
		segments[i] = h.pool(s, first[i])
		out.tags = append(out.tags, segments[i].tags)
	}
	talk := segments[0]
	if len(states) == 1 {
		x := concat(talk.first, talk.mean, talk.weighted[tagUnclear], talk.weighted[tagSettled])
		signs := h.signs1.Apply([]float32{talk.highest[tagUnclear], talk.highest[tagSettled]})
		out.gate = float64(h.gate1.Apply(x)[0] + signs[0])
		return out
	}
	passages := segments[1:]
	readings := make([][]float32, len(passages))
	mean, most := make([]float32, h.reading), make([]float32, h.reading)
	for i := range most {
		most[i] = -1
	}
	for i, p := range passages {
		readings[i] = layers.GELU(h.read.Apply(concat(p.mean, p.weighted[tagAnswer], p.weighted[tagCondition], p.weighted[tagSettled])))
		l := h.passage.Apply(readings[i])
		out.passage = append(out.passage, [2]float64{float64(l[0]), float64(l[1])})
		for k, v := range readings[i] {
			mean[k] += v / float32(len(passages))
			most[k] = max(most[k], v)
		}
	}
	strongest := float32(missing)
	out.pair = make([][]float64, len(passages))
	for i := range out.pair {
		out.pair[i] = make([]float64, len(passages))
	}
	for i, a := range readings {
		for j, b := range readings[:i] {
			v := h.pair.Apply(compare(a, b))[0]
			strongest = max(strongest, v)
			out.pair[i][j], out.pair[j][i] = float64(v), float64(v)
		}
	}
	signs := []float32{strongest}
	for kind := range 2 {
		first, second := float32(missing), float32(missing)
		for _, p := range out.passage {
			switch v := float32(p[kind]); {
			case v > first:
				first, second = v, first
			case v > second:
				second = v
			}
		}
		signs = append(signs, first, second)
	}
	signs = append(signs, talk.highest[tagUnclear], talk.highest[tagSettled])
	x := make([]float32, 0, 3*d+2*h.reading)
	x = append(x, concat(talk.first, talk.mean, talk.weighted[tagSettled], mean, most)...)
	out.gate = float64(h.gate2.Apply(x)[0] + h.signs2.Apply(signs)[0])
	return out
}

// pooled is one segment, summed up.
type pooled struct {
	tags     [][]float32         // probabilities for each token
	first    []float32           // state of [CLS]
	mean     []float32           // of the states from first on
	weighted [tagCount][]float32 // mean of the states weighted by a tag's probability
	highest  [tagCount]float32   // highest logit of a tag, at least missing
}

func (h *heads) pool(states []float32, first int) pooled {
	d, n := h.hidden, len(states)/h.hidden
	p := pooled{first: states[:d], mean: make([]float32, d)}
	var weight [tagCount]float32
	for k := range tagCount {
		p.weighted[k] = make([]float32, d)
		p.highest[k] = missing
	}
	for t := range n {
		s := states[t*d : (t+1)*d]
		logits := h.tags.Apply(s)
		for k, l := range logits {
			p.highest[k] = max(p.highest[k], l)
			w := float32(sigmoid(float64(l)))
			logits[k] = w
			weight[k] += w
			for i, v := range s {
				p.weighted[k][i] += w * v
			}
		}
		p.tags = append(p.tags, logits)
		if t >= first {
			for i, v := range s {
				p.mean[i] += v / float32(n-first)
			}
		}
	}
	for k := range tagCount {
		for i := range p.weighted[k] {
			p.weighted[k][i] /= weight[k] + 1e-3
		}
	}
	return p
}

// compare is [a+b, |a-b|, a*b]: the same for (a, b) and (b, a).
func compare(a, b []float32) []float32 {
	n := len(a)
	x := make([]float32, 3*n)
	for i := range a {
		x[i], x[n+i], x[2*n+i] = a[i]+b[i], max(a[i]-b[i], b[i]-a[i]), a[i]*b[i]
	}
	return x
}

func concat(parts ...[]float32) []float32 {
	var x []float32
	for _, p := range parts {
		x = append(x, p...)
	}
	return x
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
