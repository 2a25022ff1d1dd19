// Package heads has the small layers that an adapter puts on top of the encoder's
// hidden states, read from a safetensors file.
package heads

import (
	"fmt"
	"math"

	"github.com/askback/askback/internal/safetensors"
)

// Linear is a linear layer: weights by row, one row for each output.
type Linear struct {
	In, Out      int
	weight, bias []float32
}

// Apply gives W x + b.
func (l Linear) Apply(x []float32) []float32 {
	y := make([]float32, l.Out)
	for o := range y {
		row, sum := l.weight[o*l.In:(o+1)*l.In], float32(0)
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

// MLP is linear, GELU, linear.
type MLP [2]Linear

// Apply gives the output of the second layer.
func (m MLP) Apply(x []float32) []float32 { return m[1].Apply(GELU(m[0].Apply(x))) }

// GELU is the exact form, x Φ(x), in place.
func GELU(x []float32) []float32 {
	for i, v := range x {
		x[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
	}
	return x
}

// Reader reads layers from a file, up to the first error.
type Reader struct {
	file *safetensors.File
	err  error
}

// Read begins to read a safetensors file.
func Read(data []byte) *Reader {
	file, err := safetensors.Parse(data)
	return &Reader{file, err}
}

// Err is the first error.
func (r *Reader) Err() error { return r.err }

// Linear reads the tensors name.weight [out, in] and name.bias [out]. out 0 takes
// as many outputs as there are.
func (r *Reader) Linear(name string, in, out int) Linear {
	l := r.Weights(name, in, out)
	if r.err != nil {
		return l
	}
	if l.bias, r.err = r.file.Float32s(name + ".bias"); r.err == nil && len(l.bias) != l.Out {
		r.err = fmt.Errorf("tensor %s.bias has %d numbers; want %d", name, len(l.bias), l.Out)
	}
	return l
}

// Weights reads a layer without a bias.
func (r *Reader) Weights(name string, in, out int) (l Linear) {
	if r.err != nil {
		return l
	}
	info, ok := r.file.Info(name + ".weight")
	if !ok {
		r.err = fmt.Errorf("tensor %s.weight is missing", name)
		return l
	}
	if out == 0 && len(info.Shape) == 2 {
		out = info.Shape[0]
	}
	if len(info.Shape) != 2 || info.Shape[0] != out || info.Shape[1] != in {
		r.err = fmt.Errorf("tensor %s.weight has the shape %v; want [%d %d]", name, info.Shape, out, in)
		return l
	}
	l = Linear{In: in, Out: out}
	l.weight, r.err = r.file.Float32s(name + ".weight")
	return l
}

// MLP reads the layers name.0, with as many outputs as there are, and name.1.
func (r *Reader) MLP(name string, in, out int) (m MLP) {
	m[0] = r.Linear(name+".0", in, 0)
	m[1] = r.Linear(name+".1", m[0].Out, out)
	return m
}
