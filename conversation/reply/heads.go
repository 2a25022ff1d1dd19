package reply

import (
	"math"

	layers "github.com/askback/askback/internal/encoder/heads"
)

// missing stands for the logit of an option that does not exist.
const missing = -5

// heads are the small layers on top of the hidden states.
type heads struct {
	hidden       int
	option, kind layers.MLP
}

// readHeads reads heads.safetensors for an encoder of that hidden size.
func readHeads(data []byte, hidden, kinds int) (*heads, error) {
	r := layers.Read(data)
	h := &heads{
		hidden: hidden,
		option: r.MLP("option", 4*hidden, 1),
		kind:   r.MLP("kind", 3*hidden+3, kinds),
	}
	return h, r.Err()
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
		offered, logits = append(offered, o), append(logits, h.option.Apply(x)[0])
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
	for _, v := range h.kind.Apply(x) {
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
