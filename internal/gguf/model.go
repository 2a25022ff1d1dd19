package gguf

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// KV is one entry of a model's metadata. The value is a bool, a string, a sized
// integer or float, or a slice of one of them, as the format has it.
type KV struct {
	Key   string
	Value any
}

// Metadata is a model's metadata, in the file's order.
type Metadata []KV

// Get gives a value, or nil.
func (m Metadata) Get(key string) any {
	for _, kv := range m {
		if kv.Key == key {
			return kv.Value
		}
	}
	return nil
}

// with gives the metadata with a value set anew or added.
func (m Metadata) with(key string, value any) Metadata {
	out := slices.Clone(m)
	for i := range out {
		if out[i].Key == key {
			out[i].Value = value
			return out
		}
	}
	return append(out, KV{key, value})
}

// Tensor is a named array of numbers, read in rows.
type Tensor struct {
	Name string
	Dims []int // in ggml's order: the first is the length of a row
	Type Type  // as it is stored

	rows func(dst []float32, from int) error
}

// Width is the length of a row.
func (t Tensor) Width() int { return t.Dims[0] }

// Rows is the number of rows, whatever the number of dimensions.
func (t Tensor) Rows() int { return product(t.Dims[1:]) }

// Read reads whole rows, as many as dst holds, from the row of that number.
func (t Tensor) Read(dst []float32, from int) error {
	if n := len(dst) / t.Width(); len(dst)%t.Width() != 0 || from < 0 || from+n > t.Rows() {
		return fmt.Errorf("tensor %s has %d rows of %d numbers; %d numbers from row %d cannot be read", t.Name, t.Rows(), t.Width(), len(dst), from)
	}
	if err := t.rows(dst, from); err != nil {
		return fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	return nil
}

// Floats reads the whole tensor.
func (t Tensor) Floats() ([]float32, error) {
	out := make([]float32, product(t.Dims))
	return out, t.Read(out, 0)
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// inMemory makes a tensor of numbers that are at hand.
func inMemory(name string, data []float32, dims ...int) Tensor {
	return Tensor{Name: name, Dims: dims, rows: func(dst []float32, from int) error {
		copy(dst, data[from*dims[0]:])
		return nil
	}}
}

// Model is a model or an adapter. Its tensors are safe for concurrent reading.
type Model struct {
	Metadata Metadata
	Tensors  []Tensor

	files []io.Closer
}

// Tensor finds a tensor by its name.
func (m *Model) Tensor(name string) (Tensor, bool) {
	i := slices.IndexFunc(m.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, false
	}
	return m.Tensors[i], true
}

// Close closes the files that the model is read from.
func (m *Model) Close() error {
	var errs []error
	for _, f := range m.files {
		errs = append(errs, f.Close())
	}
	m.files = nil
	return errors.Join(errs...)
}

// Shape is what a conversion must know of the base model.
type Shape struct {
	Arch           string // "llama" or "granite"
	Layers         int
	Width          int // of the hidden states
	Heads, KVHeads int // of the queries, and of the keys and values
	Head           int // numbers in a head
	FF             int // width of the feed-forward layer
}

// Shape reads the shape from the model's metadata.
func (m *Model) Shape() (Shape, error) { return NewShape(m.Metadata.Get) }

// NewShape reads the shape from metadata under GGUF's names, such as a file's
// or what a server tells of a model. An architecture that is not known is an
// error.
func NewShape(get func(key string) any) (Shape, error) {
	s := Shape{}
	s.Arch, _ = get("general.architecture").(string)
	if s.Arch != "llama" && s.Arch != "granite" {
		return s, fmt.Errorf("the base model's architecture is %q; adapters can be brought to llama and granite", s.Arch)
	}
	for _, f := range []struct {
		key      string
		to       *int
		fallback int
	}{
		{"block_count", &s.Layers, 0}, {"embedding_length", &s.Width, 0}, {"feed_forward_length", &s.FF, 0},
		{"attention.head_count", &s.Heads, 0}, {"attention.head_count_kv", &s.KVHeads, -1}, {"attention.key_length", &s.Head, -1},
	} {
		n, ok := whole(get(s.Arch + "." + f.key))
		if !ok {
			if n = f.fallback; n == 0 {
				return s, fmt.Errorf("the base model's metadata has no number %s.%s", s.Arch, f.key)
			}
		}
		*f.to = n
	}
	if s.KVHeads < 0 {
		s.KVHeads = s.Heads
	}
	if s.Head < 0 {
		s.Head = s.Width / s.Heads
	}
	if s.Head%2 != 0 {
		return s, fmt.Errorf("the base model's heads have %d numbers, which do not pair for the rotary embedding", s.Head)
	}
	return s, nil
}

// maxSide bounds a dimension, so that products of two fit an int.
const maxSide = 1 << 31

// whole reads a positive whole number of any type.
func whole(value any) (int, bool) {
	var x float64
	switch v := value.(type) {
	case uint8:
		x = float64(v)
	case uint16:
		x = float64(v)
	case uint32:
		x = float64(v)
	case uint64:
		x = float64(v)
	case int8:
		x = float64(v)
	case int16:
		x = float64(v)
	case int32:
		x = float64(v)
	case int64:
		x = float64(v)
	case int:
		x = float64(v)
	case float32:
		x = float64(v)
	case float64:
		x = v
	default:
		return 0, false
	}
	if !(x >= 1 && x < maxSide) || x != float64(int(x)) {
		return 0, false
	}
	return int(x), true
}
