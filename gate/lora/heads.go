package lora

import (
	"fmt"
	"math"

	"github.com/askback/askback/internal/safetensors"
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

// layer is a linear layer: weights by row, one row for each output.
type layer struct {
	in, out      int
	weight, bias []float32
}

// apply gives W x + b.
func (l layer) apply(x []float32) []float32 {
	y := make([]float32, l.out)
	for o := range y {
		row, sum := l.weight[o*l.in:(o+1)*l.in], float32(0)
		for i, w := range row {
			sum += w * x[i]
		}
		if l.bias != nil {
			sum += l.bias[o]
		}
		y[o] = sum
	}
	return y
}

// mlp is linear, GELU, linear.
type mlp [2]layer

func (m mlp) apply(x []float32) []float32 { return m[1].apply(gelu(m[0].apply(x))) }

// gelu is the exact form, x Φ(x), in place.
func gelu(x []float32) []float32 {
	for i, v := range x {
		x[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
	}
	return x
}

// heads are the small layers on top of the hidden states.
type heads struct {
	hidden, reading int
	tags            layer // a token's state -> 4 logits
	read            layer // means: plain, of answer, condition, settled -> a passage's reading
	passage         layer // a reading -> answers, live
	pair            mlp   // two readings -> conflict
	gate1, gate2    mlp
	signs1, signs2  layer // strongest logits of the other heads -> added to the gate's logit
}

// readHeads reads heads.safetensors for an encoder of that hidden size.
func readHeads(data []byte, hidden int) (*heads, error) {
	file, err := safetensors.Parse(data)
	if err != nil {
		return nil, err
	}
	h := &heads{hidden: hidden}
	read := func(name string, in, out int, bias bool) (l layer) {
		if err != nil {
			return l
		}
		info, ok := file.Info(name + ".weight")
		if !ok {
			err = fmt.Errorf("tensor %s.weight is missing", name)
			return l
		}
		if out == 0 && len(info.Shape) == 2 {
			out = info.Shape[0]
		}
		if len(info.Shape) != 2 || info.Shape[0] != out || info.Shape[1] != in {
			err = fmt.Errorf("tensor %s.weight has the shape %v; want [%d %d]", name, info.Shape, out, in)
			return l
		}
		l = layer{in: in, out: out}
		if l.weight, err = file.Float32s(name + ".weight"); err != nil || !bias {
			return l
		}
		if l.bias, err = file.Float32s(name + ".bias"); err == nil && len(l.bias) != out {
			err = fmt.Errorf("tensor %s.bias has %d numbers; want %d", name, len(l.bias), out)
		}
		return l
	}
	h.tags = read("tags", hidden, tagCount, true)
	h.read = read("read", 4*hidden, 0, true)
	h.reading = h.read.out
	h.passage = read("passage", h.reading, 2, true)
	h.pair[0] = read("pair.0", 3*h.reading, 0, true)
	h.pair[1] = read("pair.1", h.pair[0].out, 1, true)
	h.gate1[0] = read("gate1.0", 4*hidden, 0, true)
	h.gate1[1] = read("gate1.1", h.gate1[0].out, 1, true)
	h.signs1 = read("gate1_signs", 2, 1, false)
	h.gate2[0] = read("gate2.0", 3*hidden+2*h.reading, 0, true)
	h.gate2[1] = read("gate2.1", h.gate2[0].out, 1, true)
	h.signs2 = read("gate2_signs", 7, 1, false)
	return h, err
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
		signs := h.signs1.apply([]float32{talk.highest[tagUnclear], talk.highest[tagSettled]})
		out.gate = float64(h.gate1.apply(x)[0] + signs[0])
		return out
	}
	passages := segments[1:]
	readings := make([][]float32, len(passages))
	mean, most := make([]float32, h.reading), make([]float32, h.reading)
	for i := range most {
		most[i] = -1
	}
	for i, p := range passages {
		readings[i] = gelu(h.read.apply(concat(p.mean, p.weighted[tagAnswer], p.weighted[tagCondition], p.weighted[tagSettled])))
		l := h.passage.apply(readings[i])
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
			v := h.pair.apply(compare(a, b))[0]
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
	out.gate = float64(h.gate2.apply(x)[0] + h.signs2.apply(signs)[0])
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
		logits := h.tags.apply(s)
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
