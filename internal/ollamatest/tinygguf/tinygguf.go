package tinygguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// Tensor is a named array of numbers. Dims are in ggml's order: the first is
// the length of a row.
type Tensor struct {
	Name string
	Dims []uint64
	Data []float32
}

// KV is one entry of a file's metadata: a uint32, int32, float32, bool, string,
// []string, []float32 or []int32.
type KV struct {
	Key   string
	Value any
}

// File is a GGUF file.
type File struct {
	KVs     []KV
	Tensors []Tensor
}

func (f *File) set(key string, value any) { f.KVs = append(f.KVs, KV{key, value}) }

func (f *File) add(name string, data []float32, dims ...int) {
	t := Tensor{Name: name, Data: data}
	for _, d := range dims {
		t.Dims = append(t.Dims, uint64(d))
	}
	f.Tensors = append(f.Tensors, t)
}

const align = 32 // of the tensors' data, in bytes

func pad(n uint64) uint64 { return (align - n%align) % align }

// Bytes gives the file's content.
func (f *File) Bytes() ([]byte, error) {
	w := &writer{}
	w.WriteString("GGUF")
	w.put(uint32(3), uint64(len(f.Tensors)), uint64(len(f.KVs)))
	for _, kv := range f.KVs {
		w.text(kv.Key)
		if err := w.value(kv.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
	}
	var offset uint64
	for _, t := range f.Tensors {
		w.text(t.Name)
		w.put(uint32(len(t.Dims)))
		n := uint64(1)
		for _, d := range t.Dims {
			w.put(d)
			n *= d
		}
		if n != uint64(len(t.Data)) {
			return nil, fmt.Errorf("tensor %s has %d numbers for %v", t.Name, len(t.Data), t.Dims)
		}
		w.put(uint32(0), offset) // 0: 32-bit floats
		offset += 4 * n
		offset += pad(offset)
	}
	w.Write(make([]byte, pad(uint64(w.Len()))))
	for _, t := range f.Tensors {
		w.put(t.Data)
		w.Write(make([]byte, pad(4*uint64(len(t.Data)))))
	}
	return w.Bytes(), nil
}

type writer struct{ bytes.Buffer }

func (w *writer) put(values ...any) {
	for _, v := range values {
		_ = binary.Write(w, binary.LittleEndian, v) // a buffer takes everything
	}
}

func (w *writer) text(s string) {
	w.put(uint64(len(s)))
	w.WriteString(s)
}

// value writes a metadata value with its type's number before it.
func (w *writer) value(value any) error {
	const array = uint32(9)
	switch v := value.(type) {
	case uint32:
		w.put(uint32(4), v)
	case int32:
		w.put(uint32(5), v)
	case float32:
		w.put(uint32(6), v)
	case bool:
		w.put(uint32(7), v)
	case string:
		w.put(uint32(8))
		w.text(v)
	case []string:
		w.put(array, uint32(8), uint64(len(v)))
		for _, s := range v {
			w.text(s)
		}
	case []float32:
		w.put(array, uint32(6), uint64(len(v)), v)
	case []int32:
		w.put(array, uint32(5), uint64(len(v)), v)
	default:
		return fmt.Errorf("a value of type %T cannot be written", value)
	}
	return nil
}

// Config is the shape of a model. The zero value is a llama of one layer that
// reads 4096 tokens.
type Config struct {
	Arch                            string // "llama" or "granite"
	Dim, Layers, Heads, KVHeads, FF int
	Context                         int
	Pooling                         int      // for embeddings: 0 none, 1 mean of all tokens
	Seed                            uint64   // of random weights
	Std                             float64  // of random weights
	Words                           []string // further tokens, so that long prompts have fewer
}

func (c Config) filled() Config {
	for _, d := range []struct {
		field *int
		value int
	}{{&c.Dim, 64}, {&c.Layers, 1}, {&c.Heads, 4}, {&c.KVHeads, 2}, {&c.FF, 128}, {&c.Context, 4096}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Arch == "" {
		c.Arch = "llama"
	}
	if c.Std == 0 {
		c.Std = 0.3
	}
	return c
}

// header writes what a server wants to know of a model.
func header(c Config, v *vocabulary) *File {
	f := &File{}
	p := c.Arch + "."
	f.set("general.architecture", c.Arch)
	f.set("general.name", "tiny-"+c.Arch)
	f.set("general.file_type", uint32(0))
	f.set(p+"context_length", uint32(c.Context))
	f.set(p+"embedding_length", uint32(c.Dim))
	f.set(p+"block_count", uint32(c.Layers))
	f.set(p+"feed_forward_length", uint32(c.FF))
	f.set(p+"attention.head_count", uint32(c.Heads))
	f.set(p+"attention.head_count_kv", uint32(c.KVHeads))
	f.set(p+"attention.layer_norm_rms_epsilon", float32(1e-5))
	f.set(p+"rope.dimension_count", uint32(c.Dim/c.Heads))
	f.set(p+"vocab_size", uint32(len(v.tokens)))
	if c.Pooling > 0 {
		f.set(p+"pooling_type", uint32(c.Pooling))
	}
	if c.Arch == "granite" {
		f.set(p+"embedding_scale", float32(1))
		f.set(p+"residual_scale", float32(1))
		f.set(p+"attention.scale", float32(1/math.Sqrt(float64(c.Dim/c.Heads))))
		f.set(p+"logit_scale", float32(1))
	}
	v.write(f)
	return f
}

// Random gives a model with random weights.
func Random(c Config) *File {
	c = c.filled()
	v := newVocabulary(nil)
	r := rand.New(rand.NewPCG(c.Seed, 1))
	f := header(c, v)
	random := func(name string, dims ...int) { f.add(name, Numbers(r, c.Std, dims...), dims...) }
	ones := func(name string, n int) { f.add(name, filled(1, n), n) }
	head := c.Dim / c.Heads
	random("token_embd.weight", c.Dim, len(v.tokens))
	ones("output_norm.weight", c.Dim)
	random("output.weight", c.Dim, len(v.tokens))
	for l := range c.Layers {
		b := fmt.Sprintf("blk.%d.", l)
		ones(b+"attn_norm.weight", c.Dim)
		random(b+"attn_q.weight", c.Dim, head*c.Heads)
		random(b+"attn_k.weight", c.Dim, head*c.KVHeads)
		random(b+"attn_v.weight", c.Dim, head*c.KVHeads)
		random(b+"attn_output.weight", head*c.Heads, c.Dim)
		ones(b+"ffn_norm.weight", c.Dim)
		random(b+"ffn_gate.weight", c.Dim, c.FF)
		random(b+"ffn_up.weight", c.Dim, c.FF)
		random(b+"ffn_down.weight", c.FF, c.Dim)
	}
	return f
}

// Numbers gives normally distributed numbers for a tensor of those dimensions.
func Numbers(r *rand.Rand, std float64, dims ...int) []float32 {
	out := make([]float32, product(dims))
	for i := range out {
		out[i] = float32(r.NormFloat64() * std)
	}
	return out
}

func filled(x float32, dims ...int) []float32 {
	out := make([]float32, product(dims))
	for i := range out {
		out[i] = x
	}
	return out
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
