package gguf_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/internal/gguf"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
	"github.com/askback/askback/internal/safetensors"
	"github.com/askback/askback/internal/safetensors/safetensorstest"
)

// Metadata of every type comes back as it was.
func TestMetadata(t *testing.T) {
	m := &gguf.Model{Metadata: gguf.Metadata{
		{Key: "general.architecture", Value: "llama"}, {Key: "u8", Value: uint8(200)}, {Key: "i8", Value: int8(-3)}, {Key: "u16", Value: uint16(60000)},
		{Key: "i16", Value: int16(-300)}, {Key: "u32", Value: uint32(1 << 31)}, {Key: "i32", Value: int32(-1)}, {Key: "f32", Value: float32(0.1)},
		{Key: "bool", Value: true}, {Key: "text", Value: "zwölf\n"}, {Key: "u64", Value: uint64(1 << 63)}, {Key: "i64", Value: int64(-1 << 40)},
		{Key: "f64", Value: math.Pi}, {Key: "texts", Value: []string{"", "a", "▁b"}}, {Key: "bools", Value: []bool{true, false}},
		{Key: "u8s", Value: []uint8{1, 2}}, {Key: "i8s", Value: []int8{-1}}, {Key: "u16s", Value: []uint16{9}}, {Key: "i16s", Value: []int16{-9}},
		{Key: "u32s", Value: []uint32{}}, {Key: "i32s", Value: []int32{1, -1}}, {Key: "f32s", Value: []float32{1.5}}, {Key: "u64s", Value: []uint64{7}},
		{Key: "i64s", Value: []int64{-7}}, {Key: "f64s", Value: []float64{0.25}}, {Key: "general.file_type", Value: uint32(0)},
	}}
	got := reopened(t, written(t, m, gguf.F32))
	if !reflect.DeepEqual(got.Metadata, m.Metadata) {
		t.Errorf("%v\nwant\n%v", got.Metadata, m.Metadata)
	}
	got = reopened(t, written(t, m, gguf.Q8_0))
	if got.Metadata.Get("general.file_type") != uint32(7) || got.Metadata.Get("general.quantization_version") != uint32(2) {
		t.Errorf("the metadata does not say that it is q8_0: %v", got.Metadata)
	}
	m.Metadata = append(m.Metadata, gguf.KV{Key: "odd", Value: 1 + 2i})
	if err := m.Write(t.Context(), &bytes.Buffer{}, gguf.Options{}); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Errorf("error %v", err)
	}
}

// What the writer of the tests' models writes, this one reads and writes alike.
func TestOtherWriter(t *testing.T) {
	data, err := tinygguf.Random(tinygguf.Config{Arch: "granite", Layers: 2}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	m := reopened(t, data)
	if again := written(t, m, gguf.F32); !bytes.Equal(data, again) {
		t.Errorf("a file of %d bytes came back with %d, or others", len(data), len(again))
	}
	s, err := m.Shape()
	if want := (gguf.Shape{Arch: "granite", Layers: 2, Width: 64, Heads: 4, KVHeads: 2, Head: 16, FF: 128}); err != nil || s != want {
		t.Errorf("shape %+v, error %v", s, err)
	}
}

// Every type keeps numbers as exactly as it can.
func TestTypes(t *testing.T) {
	data, err := tinygguf.Random(tinygguf.Config{}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	m := reopened(t, data)
	for kind, tolerance := range map[gguf.Type]float64{gguf.F32: 0, gguf.F16: 1.0 / (1 << 11), gguf.Q8_0: 0.5/127 + 1e-3} {
		back := reopened(t, written(t, m, kind))
		for i, want := range m.Tensors {
			w, err1 := want.Floats()
			g, err2 := back.Tensors[i].Floats()
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			stored, tolerance := kind, tolerance
			if len(want.Dims) == 1 {
				stored, tolerance = gguf.F32, 0
			}
			if back.Tensors[i].Type != stored {
				t.Errorf("%s is stored as %s, want %s", want.Name, back.Tensors[i].Type, stored)
			}
			most := 0.0
			for j := range w {
				most = max(most, math.Abs(float64(w[j])))
			}
			for j := range w {
				if d := math.Abs(float64(w[j] - g[j])); d > tolerance*most {
					t.Fatalf("%s as %s: %v became %v", want.Name, kind, w[j], g[j])
				}
			}
		}
	}
}

// Halves round as IEEE 754 says: each half is itself, and what lies between two
// goes to the nearer, ties to the even one.
func TestHalves(t *testing.T) {
	round := func(x float32) float32 {
		f := tinygguf.File{Tensors: []tinygguf.Tensor{{Name: "x", Dims: []uint64{1, 1}, Data: []float32{x}}}}
		data, err := f.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		y, err := reopened(t, written(t, reopened(t, data), gguf.F16)).Tensors[0].Floats()
		if err != nil {
			t.Fatal(err)
		}
		return y[0]
	}
	for h := uint16(0); h < 0x7bff; h += 97 {
		low, high := safetensors.FromHalf(h), safetensors.FromHalf(h+1)
		middle := low + (high-low)/2
		even := low
		if h&1 == 1 {
			even = high
		}
		for x, want := range map[float32]float32{low: low, -low: -low, high: high, middle: even,
			math.Nextafter32(middle, 0): low, math.Nextafter32(middle, high): high} {
			if got := round(x); got != want {
				t.Fatalf("%v became %v, want %v", x, got, want)
			}
		}
	}
}

func TestNumbersThatCannotBeStored(t *testing.T) {
	for _, tc := range []struct {
		x    float32
		as   gguf.Type
		want string
	}{
		{70000, gguf.F16, "too large"}, {70000, gguf.F32, ""}, {1e8, gguf.Q8_0, "too large"},
		{float32(math.NaN()), gguf.F32, "NaN"}, {float32(math.Inf(-1)), gguf.Q8_0, "-Inf"},
	} {
		f := tinygguf.File{Tensors: []tinygguf.Tensor{{Name: "x", Dims: []uint64{32, 1}, Data: append(make([]float32, 31), tc.x)}}}
		data, err := f.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		err = reopened(t, data).Write(t.Context(), &bytes.Buffer{}, gguf.Options{Type: tc.as})
		if (err != nil) != (tc.want != "") || err != nil && !(strings.Contains(err.Error(), tc.want) && strings.Contains(err.Error(), "tensor x")) {
			t.Errorf("%v as %s: error %v, want %q", tc.x, tc.as, err, tc.want)
		}
	}
}

// An adapter merged into a base from Hugging Face's files and from the base's
// own GGUF file gives the same weights, and they are those of the test models'
// own arithmetic.
func TestMergesAgree(t *testing.T) {
	for _, name := range []string{"llama", "granite", "granitemoehybrid"} {
		base, l := opened(t, name)
		direct := reopened(t, written(t, merged(t, base, l), gguf.F32))
		through := merged(t, reopened(t, written(t, base, gguf.F32)), l)
		changed := 0
		for _, w := range direct.Tensors {
			g, ok := through.Tensor(w.Name)
			if !ok {
				t.Fatalf("%s: no tensor %s", name, w.Name)
			}
			a, err1 := w.Floats()
			b, err2 := g.Floats()
			before, _ := base.Tensor(w.Name)
			c, err3 := before.Floats()
			if err := errors.Join(err1, err2, err3); err != nil || !slices.Equal(a, b) {
				t.Errorf("%s: %s differs, error %v", name, w.Name, err)
			}
			if !slices.Equal(a, c) {
				changed++
			}
		}
		if changed != 2*7 { // seven matrices in each of two layers
			t.Errorf("%s: the adapter changes %d tensors", name, changed)
		}
	}
}

func TestWriteStops(t *testing.T) {
	base, _ := opened(t, "llama")
	ctx, cancel := context.WithCancel(t.Context())
	var told int64
	err := base.Write(ctx, &bytes.Buffer{}, gguf.Options{Progress: func(done, total int64) {
		told = done
		if done > total/2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || told == 0 {
		t.Errorf("error %v after %d numbers", err, told)
	}
	if err := base.Write(t.Context(), full{}, gguf.Options{}); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("error %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// What cannot be converted is refused by its name.
func TestAdaptersRefused(t *testing.T) {
	shape := gguf.Shape{Arch: "granite", Layers: 2, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FF: 16}
	const q = "base_model.model.model.layers.0.self_attn.q_proj"
	matrix := func(name string, rows, width int) safetensorstest.Tensor {
		return safetensorstest.Floats(name, make([]float32, rows*width), rows, width)
	}
	good := []safetensorstest.Tensor{matrix(q+".lora_A.weight", 2, 8), matrix(q+".lora_B.weight", 8, 2)}
	module := func(name string, rows, width int) []safetensorstest.Tensor {
		return []safetensorstest.Tensor{matrix("base_model.model."+name+".lora_A.weight", 2, width), matrix("base_model.model."+name+".lora_B.weight", rows, 2)}
	}
	for _, tc := range []struct {
		name, set string // further settings
		tensors   []safetensorstest.Tensor
		want      string // of the error
	}{
		{"good", ``, good, ""},
		{"rank-stabilised", `"use_rslora": true`, good, ""},
		{"prompt tuning", `"peft_type": "PROMPT_TUNING"`, good, "PROMPT_TUNING"},
		{"activated", `"alora_invocation_tokens": [100264, 2]`, good, "alora"},
		{"DoRA", `"use_dora": true`, good, "use_dora"},
		{"bias", `"bias": "all"`, good, "bias"},
		{"bias of B", `"lora_bias": true`, good, "lora_bias"},
		{"transposed", `"fan_in_fan_out": true`, good, "fan_in_fan_out"},
		{"saved", `"modules_to_save": ["lm_head"]`, good, "lm_head"},
		{"ranks", `"rank_pattern": {"q_proj": 4}`, good, "rank_pattern"},
		{"scales", `"alpha_pattern": {"q_proj": 4}`, good, "alpha_pattern"},
		{"layers again", `"layer_replication": [[0, 1]]`, good, "layer_replication"},
		{"tokens", `"trainable_token_indices": [3]`, good, "trainable_token_indices"},
		{"bare weights", `"target_parameters": ["experts.w"]`, good, "experts.w"},
		{"no rank", `"r": 0`, good, "rank r"},
		{"no scale", `"lora_alpha": 0`, good, "lora_alpha"},
		{"another rank", `"r": 3`, good, "rank 2"},
		{"half a pair", ``, good[:1], "only one of"},
		{"nothing", ``, nil, "no weights"},
		{"embedding", ``, module("model.embed_tokens", 8, 8), "model.embed_tokens"},
		{"output", ``, module("lm_head", 8, 8), "lm_head"},
		{"router", ``, module("model.layers.0.block_sparse_moe.router.layer", 8, 8), "block_sparse_moe"},
		{"mamba", ``, module("model.layers.1.mamba.in_proj", 8, 8), "mamba.in_proj"},
		{"layer beyond", ``, module("model.layers.2.self_attn.q_proj", 8, 8), "of layer 2"},
		{"no layer", ``, module("model.layers.x.self_attn.q_proj", 8, 8), "layers.x"},
		{"wider", ``, module("model.layers.0.self_attn.q_proj", 16, 16), "the base model's has 8 by 8"},
		{"a magnitude", ``, append(good[:2:2], matrix(q+".lora_magnitude_vector", 8, 1)), "lora_magnitude_vector"},
		{"a vector", ``, append(good[:1:1], safetensorstest.Floats(q+".lora_B.weight", make([]float32, 8), 8)), "not that of a matrix"},
		{"bytes", ``, append(good[:1:1], safetensorstest.Tensor{Name: q + ".lora_B.weight", DType: safetensors.I8, Shape: []int{8, 2}, Data: make([]byte, 16)}), "I8"},
		{"gate twice", ``, slices.Concat(module("model.layers.0.mlp.gate_proj", 16, 8), module("model.layers.0.shared_mlp.input_linear", 32, 8)), "two of its modules"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			settings := map[string]any{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": "somebody/base"}
			if err := json.Unmarshal([]byte("{"+tc.set+"}"), &settings); err != nil {
				t.Fatal(err)
			}
			text, _ := json.Marshal(settings)
			a, err := gguf.ParseAdapter(text, safetensorstest.File(tc.tensors...))
			if err == nil {
				_, err = a.For(shape)
			}
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// The scale of a rank-stabilised adapter is alpha over the root of the rank.
func TestScale(t *testing.T) {
	_, l := opened(t, "granite") // r 4, alpha 6
	if got := l.Model().Metadata.Get("adapter.lora.alpha"); got != float32(12) {
		t.Errorf("alpha %v; over the rank 4 it should be 6 over 2", got)
	}
}

func TestBasesRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		file, from, to string
		want           string
	}{
		"another type":  {"config.json", `"model_type": "llama"`, `"model_type": "qwen3"`, `"qwen3"`},
		"scaled rotary": {"config.json", `"rope_type": "default"`, `"rope_type": "yarn"`, `"yarn"`},
		"quantised":     {"config.json", `"model_type"`, `"quantization_config": {"bits": 4}, "model_type"`, "quantised"},
		"no heads":      {"config.json", `"num_attention_heads": 4`, `"num_attention_heads": 0`, "no size"},
		"more layers":   {"config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 3`, "model.layers.2"},
		"fewer layers":  {"config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 1`, "has no place"},
		"other width":   {"config.json", `"intermediate_size": 64`, `"intermediate_size": 32`, "config.json says"},
		"other words":   {"tokenizer.json", `\\p{N}{1,3}`, `\\p{N}`, "cuts texts"},
		"no BPE":        {"tokenizer.json", `"type": "BPE"`, `"type": "Unigram"`, "byte-level BPE"},
		"small":         {"config.json", `"vocab_size": 272`, `"vocab_size": 100`, "the vocabulary has 100"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "llama", "base"))); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, tc.file)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(data), tc.from, tc.to, 1)
			if changed == string(data) {
				t.Fatalf("%s does not hold %s", tc.file, tc.from)
			}
			if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
			if m, err := gguf.OpenHuggingFace(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
				if err == nil {
					m.Close()
				}
			}
		})
	}
	// A file whose weights are stored otherwise is opened, and refused by name
	// when they are wanted.
	data, err := tinygguf.Random(tinygguf.Config{}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	name := "token_embd.weight"
	at := bytes.Index(data, []byte(name)) + len(name) + 4 + 16
	binary.LittleEndian.PutUint32(data[at:], 12)
	err = reopened(t, data).Write(t.Context(), &bytes.Buffer{}, gguf.Options{})
	if err == nil || !strings.Contains(err.Error(), "q4_k") || !strings.Contains(err.Error(), name) {
		t.Errorf("error %v", err)
	}
}

func TestMalformedFiles(t *testing.T) {
	data, err := tinygguf.Random(tinygguf.Config{}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	huge := slices.Clone(data)
	binary.LittleEndian.PutUint64(huge[8:], 1<<60)
	version := slices.Clone(data)
	version[4] = 9
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"empty": {nil, "middle of its header"}, "another": {[]byte("PK\x03\x04 and so on"), "no GGUF"}, "version": {version, "version 9"},
		"huge": {huge, "claims"}, "cut header": {data[:2000], "claims"}, "cut tensors": {data[:bytes.Index(data, []byte("blk.0.attn_q"))], "claims"}, "cut entry": {data[:9], "middle of its header"}, "cut data": {data[:len(data)-64], "outside the file"},
	} {
		if _, err := gguf.Open(bytes.NewReader(tc.data), int64(len(tc.data))); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	tiny := tinygguf.File{
		KVs:     []tinygguf.KV{{Key: "general.architecture", Value: "llama"}, {Key: "a", Value: []string{"x", "y"}}, {Key: "n", Value: []int32{1}}},
		Tensors: []tinygguf.Tensor{{Name: "t", Dims: []uint64{2, 2}, Data: []float32{1, 2, 3, 4}}},
	}
	data, err := tiny.Bytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:40])
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := gguf.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		_, _ = m.Shape()
		var b bytes.Buffer
		if m.Write(t.Context(), &b, gguf.Options{}) != nil {
			return // weights that cannot be read or are no numbers
		}
		again, err := gguf.Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil || len(again.Tensors) != len(m.Tensors) {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

func FuzzParseAdapter(f *testing.F) {
	settings := []byte(`{"peft_type":"LORA","r":1,"lora_alpha":2,"use_rslora":true}`)
	for name, rows := range map[string]int{"self_attn.k_proj": 2, "shared_mlp.input_linear": 8} { // small, or fuzzing is slow
		name = "base_model.model.model.layers.0." + name
		f.Add(settings, safetensorstest.File(safetensorstest.Floats(name+".lora_A.weight", make([]float32, 4), 1, 4),
			safetensorstest.Floats(name+".lora_B.weight", make([]float32, rows), rows, 1)))
	}
	shape := gguf.Shape{Arch: "llama", Layers: 1, Width: 4, Heads: 2, KVHeads: 1, Head: 2, FF: 4}
	f.Fuzz(func(t *testing.T, settings, weights []byte) {
		a, err := gguf.ParseAdapter(settings, weights)
		if err != nil {
			return
		}
		if l, err := a.For(shape); err == nil {
			names := map[string]bool{}
			for _, x := range l.Model().Tensors {
				names[x.Name] = true
			}
			if len(names)%2 != 0 || len(names) == 0 {
				t.Fatalf("the adapter has the tensors %v", slices.Sorted(maps.Keys(names)))
			}
		}
	})
}
