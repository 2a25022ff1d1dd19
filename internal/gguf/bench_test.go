package gguf_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/askback/askback/internal/gguf"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
	"github.com/askback/askback/internal/safetensors/safetensorstest"
)

// BenchmarkMerge merges an adapter of rank 32 into a layer with the sides of
// Granite 4 Micro's (2560, feed-forward 8192) and writes it. A layer has 76
// million numbers; the model has 40.
func BenchmarkMerge(b *testing.B) {
	const width, ff, rank = 2560, 8192, 32
	data, err := tinygguf.Random(tinygguf.Config{Arch: "granite", Dim: width, Heads: 40, KVHeads: 8, FF: ff}).Bytes()
	if err != nil {
		b.Fatal(err)
	}
	base, err := gguf.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var tensors []safetensorstest.Tensor
	for name, sides := range map[string][2]int{"self_attn.q_proj": {width, width}, "self_attn.k_proj": {512, width}, "self_attn.v_proj": {512, width},
		"self_attn.o_proj": {width, width}, "mlp.gate_proj": {ff, width}, "mlp.up_proj": {ff, width}, "mlp.down_proj": {width, ff}} {
		name = "base_model.model.model.layers.0." + name
		tensors = append(tensors, safetensorstest.Floats(name+".lora_A.weight", tinygguf.Numbers(r, 0.1, rank, sides[1]), rank, sides[1]),
			safetensorstest.Floats(name+".lora_B.weight", tinygguf.Numbers(r, 0.1, sides[0], rank), sides[0], rank))
	}
	a, err := gguf.ParseAdapter([]byte(fmt.Sprintf(`{"peft_type": "LORA", "r": %d, "lora_alpha": 64}`, rank)), safetensorstest.File(tensors...))
	if err != nil {
		b.Fatal(err)
	}
	shape, err := base.Shape()
	if err != nil {
		b.Fatal(err)
	}
	l, err := a.For(shape)
	if err != nil {
		b.Fatal(err)
	}
	m, err := gguf.Merge(base, l)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := m.Write(b.Context(), io.Discard, gguf.Options{Type: gguf.Q8_0}); err != nil {
			b.Fatal(err)
		}
	}
}
