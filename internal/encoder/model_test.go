package encoder

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

func minilmFolder(t testing.TB) fs.FS {
	folder, err := fs.Sub(minilm, "minilm")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

var minilms sync.Map // *kernels -> *Model

// minilmWith gives the embedded base on one implementation, loaded once.
func minilmWith(t testing.TB, k *kernels) *Model {
	if m, ok := minilms.Load(k); ok {
		return m.(*Model)
	}
	m, err := load(minilmFolder(t), k)
	if err != nil {
		t.Fatal(err)
	}
	minilms.Store(k, m)
	return m
}

func readTestdata(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestConfig(t *testing.T) {
	c := minilmWith(t, available()[0]).Config()
	if len(c.Fingerprint) != 16 {
		t.Errorf("Fingerprint = %q, want 16 digits", c.Fingerprint)
	}
	c.Fingerprint = ""
	want := Config{
		Name: "all-MiniLM-L6-v2", Layers: 6, Hidden: 384, Heads: 12, Intermediate: 1536,
		MaxTokens: 512, Vocabulary: 30522, Types: 2, NormEpsilon: 1e-12, Pooling: MeanPooling,
	}
	if c != want {
		t.Errorf("Config = %+v, want %+v", c, want)
	}
}

// Another byte in any file is another fingerprint.
func TestFingerprint(t *testing.T) {
	seen := map[string]string{}
	for _, change := range []string{"", "config.json", "vocab.txt", "model.safetensors"} {
		folder := randomFolder(t)
		if change != "" {
			data := folder[change].Data
			switch change {
			case "config.json":
				folder[change].Data = append(data, '\n')
			case "vocab.txt":
				data[len(data)-2] ^= 1
			default:
				data[len(data)-1] ^= 1
			}
		}
		m, err := Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		f := m.Config().Fingerprint
		if other, ok := seen[f]; ok {
			t.Errorf("a change of %q gives the fingerprint of %q", change, other)
		}
		seen[f] = change
	}
}

func randomFolder(t *testing.T) fstest.MapFS {
	folder := fstest.MapFS{}
	for _, name := range []string{"config.json", "vocab.txt", "model.safetensors"} {
		folder[name] = &fstest.MapFile{Data: []byte(readTestdata(t, "random3/"+name))}
	}
	return folder
}

func TestLoadErrors(t *testing.T) {
	replace := func(name, old, new string) func(fstest.MapFS) {
		return func(folder fstest.MapFS) {
			text := string(folder[name].Data)
			if !strings.Contains(text, old) {
				panic(name + " has no " + old)
			}
			folder[name].Data = []byte(strings.Replace(text, old, new, 1))
		}
	}
	remove := func(name string) func(fstest.MapFS) { return func(folder fstest.MapFS) { delete(folder, name) } }
	for name, c := range map[string]struct {
		change func(fstest.MapFS)
		want   string
	}{
		"no config":           {remove("config.json"), "config.json"},
		"no vocabulary":       {remove("vocab.txt"), "vocab.txt"},
		"no weights":          {remove("model.safetensors"), "model.safetensors"},
		"config not JSON":     {replace("config.json", "{", "["), "config.json"},
		"other model type":    {replace("config.json", `"bert"`, `"roberta"`), `model_type is "roberta"`},
		"other activation":    {replace("config.json", `"gelu"`, `"relu"`), `hidden_act is "relu"`},
		"odd hidden size":     {replace("config.json", `"hidden_size": 64`, `"hidden_size": 65`), "multiples of 32"},
		"odd heads":           {replace("config.json", `"num_attention_heads": 2`, `"num_attention_heads": 3`), "num_attention_heads"},
		"missing size":        {replace("config.json", `"hidden_size": 64,`, ""), "missing"},
		"huge size":           {replace("config.json", `"num_hidden_layers": 3`, `"num_hidden_layers": 1000000000000`), "out of range"},
		"many layers":         {replace("config.json", `"num_hidden_layers": 3`, `"num_hidden_layers": 100000`), "out of range"},
		"more layers":         {replace("config.json", `"num_hidden_layers": 3`, `"num_hidden_layers": 4`), `no tensor "encoder.layer.3.`},
		"other width":         {replace("config.json", `"intermediate_size": 128`, `"intermediate_size": 64`), "has shape [128 64]"},
		"vocabulary too long": {replace("vocab.txt", "the\n", "the\none\ntwo\n"), "62 pieces"},
		"weights cut":         {func(f fstest.MapFS) { f["model.safetensors"].Data = f["model.safetensors"].Data[:1000] }, "model.safetensors"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := randomFolder(t)
			c.change(folder)
			if _, err := Load(folder); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
