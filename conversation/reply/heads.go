package reply

import (
	"fmt"
	"math"

	"github.com/askback/askback/internal/safetensors"
)

// missing stands for the logit of an option that does not exist.
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
		sum := l.bias[o]
		for i, w := range l.weight[o*l.in : (o+1)*l.in] {
			sum += w * x[i]
		}
		y[o] = sum
	}
	return y
}

// mlp is linear, GELU (the exact form, x Φ(x)), linear.
type mlp [2]layer

func (m mlp) apply(x []float32) []float32 {
	y := m[0].apply(x)
	for i, v := range y {
		y[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
	}
	return m[1].apply(y)
}

// heads are the small layers on top of the hidden states.
type heads struct {
	hidden       int
	option, kind mlp
}

// readHeads reads heads.safetensors for an encoder of that hidden size.
func readHeads(data []byte, hidden, kinds int) (*heads, error) {
	file, err := safetensors.Parse(data)
	if err != nil {
		return nil, err
	}
	read := func(name string, in, out int) (l layer) {
		if err != nil {
			return l
		}
		info, ok := file.Info(name + ".weight")
		if !ok || len(info.Shape) != 2 || info.Shape[1] != in || out > 0 && info.Shape[0] != out {
			err = fmt.Errorf("tensor %s.weight has the shape %v; want [%d %d]", name, info.Shape, out, in)
			return l
		}
		l = layer{in: in, out: info.Shape[0]}
		if l.weight, err = file.Float32s(name + ".weight"); err != nil {
			return l
		}
		if l.bias, err = file.Float32s(name + ".bias"); err == nil && len(l.bias) != l.out {
			err = fmt.Errorf("tensor %s.bias has %d numbers; want %d", name, len(l.bias), l.out)
		}
		return l
	}
	h := &heads{hidden: hidden}
	h.option[0] = read("option.0", 4*hidden, 0)
	h.option[1] = read("option.1", h.option[0].out, 1)
	h.kind[0] = read("kind.0", 3*hidden+3, 0)
	h.kind[1] = read("kind.1", h.kind[0].out, kinds)
	return h, err
}

// apply gives the logits of the kinds and of the options.
func (h *heads) apply(states []float32, in input) (kinds, options []float64) {
	d := h.hidden
	said := h.mean(states, in.reply)
	most := make([]float32, d) // the mean of the options, by how much each is meant
	var offered [][]float32
	var logits []float32
	for _, s := range in.options {
		o := h.mean(states, s)
		x := make([]float32, 4*d)
		for i := range d {
			x[i], x[d+i], x[2*d+i], x[3*d+i] = o[i], said[i], o[i]*said[i], max(o[i]-said[i], said[i]-o[i])
		}
		offered, logits = append(offered, o), append(logits, h.option.apply(x)[0])
	}
	first, second := float32(missing), float32(missing)
	for i, w := range softmax(logits) {
		for k, v := range offered[i] {
			most[k] += float32(w) * v
		}
		switch v := logits[i]; {
		case v > first:
			first, second = v, first
		case v > second:
			second = v
		}
		options = append(options, float64(logits[i]))
	}
	x := append(append(append(append([]float32{}, states[:d]...), said...), most...), first, second, float32(len(logits)))
	for _, v := range h.kind.apply(x) {
		kinds = append(kinds, float64(v))
	}
	return kinds, options
}

// mean gives the mean of the states of a span; that of an empty one is its next
// token's.
func (h *heads) mean(states []float32, s span) []float32 {
	m := make([]float32, h.hidden)
	n := max(1, s.to-s.from)
	for t := s.from; t < s.from+n; t++ {
		for i, v := range states[t*h.hidden : (t+1)*h.hidden] {
			m[i] += v / float32(n)
		}
	}
	return m
}

func softmax[F float32 | float64](logits []F) []float64 {
	if len(logits) == 0 {
		return nil
	}
	most := logits[0]
	for _, l := range logits {
		most = max(most, l)
	}
	p, sum := make([]float64, len(logits)), 0.0
	for i, l := range logits {
		p[i] = math.Exp(float64(l - most))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
