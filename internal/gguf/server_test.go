package gguf_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ollama/ollama/api"

	"github.com/askback/askback/internal/gguf"
	"github.com/askback/askback/internal/ollamatest"
)

// saying is what transformers and PEFT said to a prompt, greedily.
type saying struct {
	Prompt   string
	Tokens   []int
	Said     []string
	Logprobs []float64
}

func expected(t *testing.T, name string) (e struct{ Base, Adapter []saying }) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name, "expected.json"))
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func written(t *testing.T, m *gguf.Model, kind gguf.Type) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(t.Context(), &b, gguf.Options{Type: kind}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reopened(t *testing.T, data []byte) *gguf.Model {
	t.Helper()
	m, err := gguf.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// opened gives a base and its adapter of testdata.
func opened(t *testing.T, name string) (*gguf.Model, *gguf.LoRA) {
	t.Helper()
	base, err := gguf.OpenHuggingFace(filepath.Join("testdata", name, "base"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { base.Close() })
	a, err := gguf.OpenAdapter(filepath.Join("testdata", name, "adapter"))
	if err != nil {
		t.Fatal(err)
	}
	shape, err := base.Shape()
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.For(shape)
	if err != nil {
		t.Fatal(err)
	}
	return base, l
}

func merged(t *testing.T, base *gguf.Model, l *gguf.LoRA) *gguf.Model {
	t.Helper()
	m, err := gguf.Merge(base, l)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A real server says with the adapter, and with the merged model in each form,
// token for token what transformers says with PEFT; and with q8_0 what it says
// when it quantises the merged model itself.
func TestServerSaysWhatTransformersSays(t *testing.T) {
	s := ollamatest.Start(t)
	for _, name := range []string{"llama", "granite", "granitemoehybrid"} {
		want := expected(t, name)
		base, l := opened(t, name)
		all := merged(t, base, l)
		f16, all16 := written(t, base, gguf.F16), written(t, all, gguf.F16)
		for _, tc := range []struct {
			form           string
			model, adapter []byte
			want           []saying
		}{
			{"base-f32", written(t, base, gguf.F32), nil, want.Base},
			{"base-f16", f16, nil, want.Base},
			{"adapter", f16, written(t, l.Model(), gguf.F32), want.Adapter},
			{"merged-f32", written(t, all, gguf.F32), nil, want.Adapter},
			{"merged-f16", all16, nil, want.Adapter},
			{"merged-gguf", written(t, merged(t, reopened(t, f16), l), gguf.F16), nil, want.Adapter},
		} {
			t.Run(name+"/"+tc.form, func(t *testing.T) {
				r := &api.CreateRequest{Template: "{{ .Prompt }}"}
				if tc.adapter != nil {
					digest := fmt.Sprintf("sha256:%x", sha256.Sum256(tc.adapter))
					if err := s.API.CreateBlob(t.Context(), digest, bytes.NewReader(tc.adapter)); err != nil {
						t.Fatal(err)
					}
					r.Adapters = map[string]string{"adapter.gguf": digest}
				}
				model := s.Create(t, name+"-"+tc.form, r, map[string][]byte{"model.gguf": tc.model})
				for _, w := range tc.want {
					says(t, s.API, model, w).compare(t, w, 0.02)
				}
			})
		}
		t.Run(name+"/merged-q8_0", func(t *testing.T) {
			ours := s.Create(t, name+"-ours", &api.CreateRequest{Template: "{{ .Prompt }}"}, map[string][]byte{"model.gguf": written(t, reopened(t, all16), gguf.Q8_0)})
			theirs := s.Create(t, name+"-theirs", &api.CreateRequest{Template: "{{ .Prompt }}", Quantize: "q8_0"}, map[string][]byte{"model.gguf": all16})
			for _, w := range want.Adapter {
				says(t, s.API, ours, w).compare(t, says(t, s.API, theirs, w), 1e-4)
			}
		})
	}
}

// says asks a model to go on with a prompt, greedily.
func says(t *testing.T, client *api.Client, model string, want saying) saying {
	t.Helper()
	no := false
	got := saying{Prompt: want.Prompt}
	err := client.Generate(context.Background(), &api.GenerateRequest{
		Model: model, Prompt: want.Prompt, Raw: true, Stream: &no, Logprobs: true,
		Options: map[string]any{"temperature": 0, "num_predict": len(want.Said), "num_thread": 1, "num_ctx": 256, "repeat_penalty": 1},
	}, func(r api.GenerateResponse) error {
		got.Tokens = make([]int, r.PromptEvalCount) // which they are is not told
		for _, l := range r.Logprobs {
			got.Said, got.Logprobs = append(got.Said, l.Token), append(got.Logprobs, l.Logprob)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// compare holds what was said to what is wanted; tolerance is of the logarithms
// of the probabilities.
func (got saying) compare(t *testing.T, want saying, tolerance float64) {
	t.Helper()
	if len(got.Tokens) != len(want.Tokens) {
		t.Errorf("%q was read as %d tokens, want %d", want.Prompt, len(got.Tokens), len(want.Tokens))
	}
	if !slices.Equal(got.Said, want.Said) {
		t.Fatalf("%q was answered with %q, want %q", want.Prompt, got.Said, want.Said)
	}
	most := 0.0
	for i, p := range got.Logprobs {
		most = max(most, math.Abs(p-want.Logprobs[i]))
	}
	if most > tolerance {
		t.Errorf("to %q the probabilities differ by %.4f: %.4f, want %.4f", want.Prompt, most, got.Logprobs, want.Logprobs)
	}
	t.Logf("to %q the logarithms differ by %.5f at most", want.Prompt, most)
}
