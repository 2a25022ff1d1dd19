package encoder

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/askback/askback/internal/safetensors"
	"github.com/askback/askback/internal/safetensors/safetensorstest"
)

// adapterFolder is an adapter in memory.
func adapterFolder(t *testing.T, config map[string]any, tensors ...safetensorstest.Tensor) fstest.MapFS {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		"adapter_config.json":       {Data: text},
		"adapter_model.safetensors": {Data: safetensorstest.File(tensors...)},
	}
}

// loraPair makes the two tensors of a part of random3, whose hidden size is 64.
func loraPair(layer int, module string, rank, in, out int) []safetensorstest.Tensor {
	at := fmt.Sprintf("base_model.model.encoder.layer.%d.%s", layer, module)
	a, b := make([]float32, rank*in), make([]float32, out*rank)
	for i := range a {
		a[i] = float32(i%7) / 50
	}
	for i := range b {
		b[i] = float32(i%5) / 50
	}
	return []safetensorstest.Tensor{
		safetensorstest.Floats(at+".lora_A.weight", a, rank, in),
		safetensorstest.Floats(at+".lora_B.weight", b, out, rank),
	}
}

func TestAdapterErrors(t *testing.T) {
	good := map[string]any{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": []string{"query"}}
	with := func(key string, value any) map[string]any {
		c := maps.Clone(good)
		c[key] = value
		return c
	}
	query := loraPair(1, "attention.self.query", 2, 64, 64)
	half := query[0]
	half.DType = safetensors.I32

	m, _ := goldenModel(t, "random3", available()[0])
	for name, c := range map[string]struct {
		config  map[string]any
		tensors []safetensorstest.Tensor
		want    string
	}{
		"not LoRA":        {with("peft_type", "IA3"), query, `peft_type is "IA3"`},
		"no rank":         {with("r", 0), query, "r is 0"},
		"DoRA":            {with("use_dora", true), query, "use_dora"},
		"biases":          {with("bias", "all"), query, `bias is "all"`},
		"rank pattern":    {with("rank_pattern", map[string]int{"key": 4}), query, "rank_pattern"},
		"saved modules":   {with("modules_to_save", []string{"head"}), query, "modules_to_save"},
		"PiSSA":           {with("init_lora_weights", "pissa"), query, "pissa"},
		"no tensors":      {good, nil, "no tensor of it adapts"},
		"other rank":      {with("r", 3), query, "shape [2 64], but r 3"},
		"other width":     {good, loraPair(1, "attention.self.query", 2, 32, 64), "ask for [2 64]"},
		"layer not there": {good, loraPair(3, "attention.self.query", 2, 64, 64), "no such part"},
		"part not there":  {good, loraPair(1, "attention.self.gate", 2, 64, 64), "no such part"},
		"foreign tensor":  {good, append(slices.Clone(query), safetensorstest.Floats("head.weight", []float32{1}, 1)), `"head.weight" does not belong`},
		"A without B":     {good, query[:1], "only one of"},
		"missing target":  {with("target_modules", []string{"query", "value"}), query, `target module "value"`},
		"integers":        {good, []safetensorstest.Tensor{half, query[1]}, "I32"},
		"the same part twice": {good, append(slices.Clone(query), safetensorstest.Floats(
			"base_model.model.encoder.layer.1.attention.self.query.lora_A.default.weight", make([]float32, 128), 2, 64)), "another tensor"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.LoadAdapter(adapterFolder(t, c.config, c.tensors...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}

	if _, err := m.LoadAdapter(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "adapter_config.json") {
		t.Errorf("empty folder: error %v, want one that names adapter_config.json", err)
	}
	if _, err := m.LoadAdapter(os.DirFS("testdata/random12/adapter")); err == nil {
		t.Error("an adapter of another model was taken")
	}
}

// What PEFT may write without changing the result is taken.
func TestAdapterVariants(t *testing.T) {
	good := map[string]any{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": []string{"query"}}
	query := loraPair(1, "attention.self.query", 2, 64, 64)
	m, _ := goldenModel(t, "random3", available()[0])
	seqs := []Sequence{{IDs: []int32{2, 9, 8, 7, 3}}}
	load := func(config map[string]any, tensors []safetensorstest.Tensor) [][]float32 {
		t.Helper()
		a, err := m.LoadAdapter(adapterFolder(t, config, tensors...))
		if err != nil {
			t.Fatal(err)
		}
		return mustForward(t, m, seqs, Options{Adapter: a})
	}
	want := load(good, query)
	if slices.EqualFunc(want, mustForward(t, m, seqs, Options{}), slices.Equal) {
		t.Fatal("the adapter changes nothing")
	}

	renamed := slices.Clone(query)
	for i := range renamed {
		renamed[i].Name = strings.Replace(renamed[i].Name, "model.encoder", "model.bert.encoder", 1)
	}
	pooled := append(slices.Clone(query),
		safetensorstest.Floats("base_model.model.pooler.dense.lora_A.weight", make([]float32, 128), 2, 64),
		safetensorstest.Floats("base_model.model.pooler.dense.lora_B.weight", make([]float32, 128), 64, 2))
	withPooler := maps.Clone(good)
	withPooler["target_modules"] = []string{"query", "pooler.dense"}
	for name, got := range map[string][][]float32{
		"part of a larger model": load(good, renamed),
		"with a pooler":          load(withPooler, pooled),
	} {
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: other states", name)
		}
	}
}
