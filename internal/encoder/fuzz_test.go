package encoder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/askback/askback/internal/safetensors/safetensorstest"
)

// FuzzAdapter reads anything as an adapter: it is refused in words, or the model runs
// with it.
func FuzzAdapter(f *testing.F) {
	m, err := load(os.DirFS(filepath.Join("testdata", "random3")), available()[0])
	if err != nil {
		f.Fatal(err)
	}
	query := safetensorstest.File(loraPair(1, "attention.self.query", 1, 64, 64)...)
	down := safetensorstest.File(loraPair(0, "output.dense", 1, 128, 64)...)
	f.Add([]byte(`{"peft_type":"LORA","r":1,"lora_alpha":4,"target_modules":["query"]}`), query)
	f.Add([]byte(`{"peft_type":"LORA","r":1,"lora_alpha":-1e300,"use_rslora":true,"target_modules":"x|y"}`), down)
	f.Add([]byte(`{"peft_type":"LORA","r":16777216,"lora_alpha":null,"rank_pattern":{},"use_dora":0}`), query[:40])
	f.Add([]byte(`[]`), []byte{})
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		a, err := m.LoadAdapter(fstest.MapFS{"adapter_config.json": {Data: config}, "adapter_model.safetensors": {Data: weights}})
		if err != nil {
			if !strings.Contains(err.Error(), "adapter_") {
				t.Errorf("%v does not name the file", err)
			}
			return
		}
		states, err := m.Forward(t.Context(), []Sequence{{IDs: []int32{2, 5, 3}, Types: []int32{0, 0, 0}}}, Options{Adapter: a})
		if err != nil || len(states) != 1 || len(states[0]) != 3*64 {
			t.Errorf("%d states, %v", len(states), err)
		}
	})
}

// FuzzConfig reads anything as a model's config.json: it is refused, or its sizes can
// be worked with.
func FuzzConfig(f *testing.F) {
	for _, name := range []string{"random3", "random12"} {
		data, err := os.ReadFile(filepath.Join("testdata", name, "config.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"model_type":"bert","hidden_act":"gelu","hidden_size":1e30}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readConfig(fstest.MapFS{"config.json": {Data: data}})
		if err != nil {
			if !strings.Contains(err.Error(), "config.json") {
				t.Errorf("%v does not name the file", err)
			}
			return
		}
		if c.Hidden < 1 || c.Heads < 1 || c.Hidden%c.Heads != 0 || c.MaxTokens < 1 || c.Layers < 1 {
			t.Errorf("%+v", c)
		}
	})
}
