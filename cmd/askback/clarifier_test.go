package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ollama/ollama/api"

	"github.com/askback/askback/internal/gguf"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
	"github.com/askback/askback/internal/safetensors/safetensorstest"
)

var tinyModels, _ = filepath.Abs(filepath.Join("..", "..", "internal", "gguf", "testdata"))

// tiny gives the folder of a tiny model or its adapter, as Hugging Face's
// libraries save them.
func tiny(arch, what string) string { return filepath.Join(tinyModels, arch, what) }

// stand is an Ollama server that keeps what it is sent and answers chats as it
// is told.
type stand struct {
	*httptest.Server
	mu      sync.Mutex
	blobs   map[string][]byte
	models  map[string]api.CreateRequest
	refuses string // adapters, with this error
	loads   bool   // it refuses them only when the model is loaded
	answer  func(messages []api.Message) (ask bool)
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{blobs: map[string][]byte{}, models: map[string]api.CreateRequest{"granite4:micro": {}}}
	mux := http.NewServeMux()
	decode := func(r *http.Request, to any) {
		if err := json.NewDecoder(r.Body).Decode(to); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
	}
	send := func(w http.ResponseWriter, values ...any) {
		for _, v := range values {
			_ = json.NewEncoder(w).Encode(v)
		}
	}
	mux.HandleFunc("POST /api/blobs/{digest}", func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); digest != r.PathValue("digest") {
			w.WriteHeader(http.StatusBadRequest)
			send(w, map[string]string{"error": "digest mismatch"})
			return
		}
		s.blobs[r.PathValue("digest")] = data
		w.WriteHeader(http.StatusCreated)
	})
	mux.HandleFunc("POST /api/create", func(w http.ResponseWriter, r *http.Request) {
		var q api.CreateRequest
		decode(r, &q)
		defer s.mu.Unlock()
		if s.refuses != "" && !s.loads && len(q.Adapters) > 0 {
			send(w, map[string]string{"error": s.refuses})
			return
		}
		s.models[q.Model] = q
		send(w, api.ProgressResponse{Status: "success"})
	})
	mux.HandleFunc("POST /api/show", func(w http.ResponseWriter, r *http.Request) {
		var q api.ShowRequest
		decode(r, &q)
		defer s.mu.Unlock()
		if _, ok := s.models[q.Model]; !ok {
			w.WriteHeader(http.StatusNotFound)
			send(w, map[string]string{"error": "model not found"})
			return
		}
		send(w, map[string]any{"capabilities": []string{"completion"}, "model_info": map[string]any{
			"general.architecture": "granite", "granite.block_count": 2, "granite.embedding_length": 32, "granite.feed_forward_length": 64,
			"granite.attention.head_count": 4, "granite.attention.head_count_kv": 2, "granite.context_length": 8192}})
	})
	mux.HandleFunc("POST /api/copy", func(w http.ResponseWriter, r *http.Request) {
		var q api.CopyRequest
		decode(r, &q)
		defer s.mu.Unlock()
		s.models[q.Destination] = s.models[q.Source]
	})
	mux.HandleFunc("DELETE /api/delete", func(w http.ResponseWriter, r *http.Request) {
		var q api.DeleteRequest
		decode(r, &q)
		defer s.mu.Unlock()
		delete(s.models, q.Model)
	})
	mux.HandleFunc("POST /api/chat", func(w http.ResponseWriter, r *http.Request) {
		var q api.ChatRequest
		decode(r, &q)
		defer s.mu.Unlock()
		if s.loads && len(s.models[q.Model].Adapters) > 0 {
			w.WriteHeader(http.StatusInternalServerError)
			send(w, map[string]string{"error": s.refuses})
			return
		}
		text := "CLEAR"
		if s.answer(q.Messages) {
			text = "Which one do you mean?"
		}
		send(w, api.ChatResponse{Message: api.Message{Role: "assistant", Content: fmt.Sprintf(`{"clarification": %q}`, text)}},
			api.ChatResponse{Done: true, DoneReason: "stop"})
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// right answers the built-in cases as they should be.
func right(messages []api.Message) bool {
	for _, k := range verificationCases {
		same := k.request.Question == messages[len(messages)-1].Content && len(k.request.History)+2 == len(messages)
		for _, p := range k.request.Passages {
			same = same && strings.Contains(messages[0].Content, p.Text)
		}
		if same {
			return k.ask
		}
	}
	panic("another case than the built-in ones: " + messages[len(messages)-1].Content)
}

func names(s *stand) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.models {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// hubOf serves folders as a hub does.
func hubOf(t *testing.T, folders map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix, folder := range folders {
			if name, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
				data, err := os.ReadFile(filepath.Join(folder, name))
				if err != nil {
					break
				}
				w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(data)))
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				_, _ = w.Write(data)
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestClarifierInstall(t *testing.T) {
	adapter := tiny("granite", "adapter")
	published := hubOf(t, map[string]string{
		"/ibm-granite/granitelib-rag-r1.0/resolve/main/query_clarification/granite-4.0-micro/lora/": adapter,
		"/else/lib/resolve/v2/mine/":  adapter,
		"/tiny/granite/resolve/main/": tiny("granite", "base"),
	})
	never := func([]api.Message) bool { return false }
	most := func(m []api.Message) bool { return right(m) && m[len(m)-1].Content != "When does the library open?" }
	for _, tc := range []struct {
		name    string
		args    []string
		answer  func([]api.Message) bool
		refuses string
		code    int
		says    []string // on both streams together
		models  []string // on the server afterwards
	}{
		{"from the hub", []string{"--hub", published.URL}, right, "", 0,
			[]string{"right: 12 of 12 (clear 6 of 6, unclear 6 of 6)", "rank 4", "ASKBACK_CLARIFIER_MODEL=askback-clarifier"}, []string{"askback-clarifier", "granite4:micro"}},
		{"from a folder", []string{"--from", adapter, "--name", "mine:v1"}, most, "", 0, []string{"right: 11 of 12 (clear 6 of 6, unclear 5 of 6)", "two places", "wrong"}, []string{"granite4:micro", "mine:v1"}},
		{"from a repository", []string{"--from", published.URL + "/else/lib/tree/v2/mine"}, right, "", 0, []string{"installed"}, []string{"askback-clarifier", "granite4:micro"}},
		{"merged, its base from the hub", []string{"--hub", published.URL, "--merge"}, right, "", 0, []string{"fetching tiny/granite", "installed"}, []string{"askback-clarifier", "granite4:micro"}},
		{"merged, its base from a folder", []string{"--from", adapter, "--base", tiny("granite", "base"), "--type", "f16"}, right, "", 0, []string{"installed"}, []string{"askback-clarifier", "granite4:micro"}},
		{"no better than chance", []string{"--from", adapter}, never, "", 1, []string{"right: 6 of 12 (clear 6 of 6, unclear 0 of 6)", "NOT installed", "never asks"}, []string{"granite4:micro"}},
		{"always asks", []string{"--from", adapter}, func([]api.Message) bool { return true }, "", 1, []string{"always asks"}, []string{"granite4:micro"}},
		{"the wrong way round", []string{"--from", adapter}, func(m []api.Message) bool { return !right(m) }, "", 1, []string{"no better than chance"}, []string{"granite4:micro"}},
		{"kept all the same", []string{"--from", adapter, "--force"}, never, "", 0, []string{"warning", "installed"}, []string{"askback-clarifier", "granite4:micro"}},
		{"adapters refused", []string{"--from", adapter}, right, "loras are not yet implemented", 1, []string{"loras are not yet implemented", "install --merge"}, []string{"granite4:micro"}},
		{"adapters not loaded", []string{"--from", adapter}, right, "loras are not yet implemented", 1, []string{"loras are not yet implemented", "install --merge"}, []string{"granite4:micro"}},
		{"merged, where adapters are not loaded", []string{"--from", adapter, "--base", tiny("granite", "base")}, right, "loras are not yet implemented", 0, []string{"installed"}, []string{"askback-clarifier", "granite4:micro"}},
		{"no such base", []string{"--from", adapter, "--base", "granite9"}, right, "", 1, []string{"ollama pull granite9"}, []string{"granite4:micro"}},
		{"another base", []string{"--from", adapter, "--merge", "--base", tiny("llama", "adapter")}, right, "", 1, []string{"config.json"}, []string{"granite4:micro"}},
		{"no adapter", []string{"--from", tiny("granite", "base")}, right, "", 2, []string{"adapter_config.json"}, []string{"granite4:micro"}},
		{"not on the hub", []string{"--hub", published.URL, "--repo", "no/body"}, right, "", 1, []string{"the hub does not have the file"}, []string{"granite4:micro"}},
		{"no address", []string{"--from", "https://hub.example/a/b/c"}, right, "", 2, []string{"--from"}, []string{"granite4:micro"}},
		{"no file", []string{"--from", adapter, "--base", "missing.gguf"}, right, "", 2, []string{"missing.gguf"}, []string{"granite4:micro"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			s := newStand(t)
			s.answer, s.refuses, s.loads = tc.answer, tc.refuses, strings.Contains(tc.name, "loaded")
			args := append([]string{"clarifier", "install", "--ollama-host", s.URL, "--cache", t.TempDir()}, tc.args...)
			out, errOut, code := command(t, "", args...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, want := range tc.says {
				if !strings.Contains(out+errOut, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if got := names(s); !slices.Equal(got, tc.models) {
				t.Errorf("the server has %q, want %q", got, tc.models)
			}
			if t.Failed() {
				t.Logf("%s%s", out, errOut)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for name, m := range s.models {
				if name == "granite4:micro" {
					continue
				}
				if m.Parameters["temperature"] != 0. || m.Parameters["num_predict"] != 1024. || m.Parameters["repeat_penalty"] != 1. {
					t.Errorf("parameters %v", m.Parameters)
				}
				for _, digest := range m.Adapters {
					if _, err := gguf.Open(bytes.NewReader(s.blobs[digest]), int64(len(s.blobs[digest]))); err != nil {
						t.Errorf("the adapter cannot be read: %v", err)
					}
				}
			}
		})
	}
}

// --out writes the file and leaves the server's models alone.
func TestClarifierOut(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newStand(t)
	for name, args := range map[string][]string{"adapter.gguf": nil, "merged.gguf": {"--base", tiny("granite", "base")}} {
		out, errOut, code := command(t, "", append([]string{"clarifier", "install", "--ollama-host", s.URL, "--from", tiny("granite", "adapter"), "--out", name}, args...)...)
		m, err := gguf.OpenFile(name)
		if code != 0 || err != nil || !strings.HasPrefix(out, name) {
			t.Fatalf("exit code %d, error %v\n%s%s", code, err, out, errOut)
		}
		if kind, _ := m.Metadata.Get("general.type").(string); (kind == "adapter") != (name == "adapter.gguf") {
			t.Errorf("%s is of the type %q", name, kind)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) != 2 || len(names(s)) != 1 || len(s.blobs) != 0 {
		t.Errorf("files %q, models %q", left, names(s))
	}
}

func TestInstruction(t *testing.T) {
	for _, tc := range []struct{ yaml, want, fails string }{
		{"model: ~\ninstruction: ~\n", "", ""},
		{"instruction: 'Reply as {{\"clarification\": \"…\"}}.'\n", `Reply as {"clarification": "…"}.`, ""},
		{"instruction: 'About {topic}'\n", "", "instruction"},
		{"sentence_boundaries: {documents: c}\n", "", "sentence_boundaries"},
		{"docs_as_message: json\n", "", "docs_as_message"},
		{"a: [\n", "", "io.yaml"},
	} {
		name := filepath.Join(t.TempDir(), "io.yaml")
		if err := os.WriteFile(name, []byte(tc.yaml), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := readInstruction(name)
		if got != tc.want || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
			t.Errorf("%q: %q, error %v", tc.yaml, got, err)
		}
	}
}

// The whole way on a real server: a clarifier that says CLEAR to everything is
// refused; kept by force, the model with the adapter and the merged one lay out
// a chat as Granite does and answer.
func TestClarifierInstallOnARealServer(t *testing.T) {
	s := ollamatest.Start(t)
	t.Chdir(t.TempDir())
	script := tinygguf.Scripted(tinygguf.Config{Arch: "granite", Context: 32768}, tinygguf.Say(`{"clarification": "`, "CLEAR", `"}`))
	data, err := script.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	base, err := gguf.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	shape, err := base.Shape()
	if err != nil {
		t.Fatal(err)
	}
	const value = "base_model.model.model.layers.0.self_attn.v_proj.lora_"
	numbers := func(name string, rows, width int) safetensorstest.Tensor {
		r := rand.New(rand.NewPCG(1, 2))
		return safetensorstest.Floats(value+name+".weight", tinygguf.Numbers(r, 0.1, rows, width), rows, width)
	}
	weights := safetensorstest.File(numbers("A", 2, shape.Width), numbers("B", shape.KVHeads*shape.Head, 2))
	settings := []byte(`{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": "tiny/scripted"}`)
	if err := errors.Join(os.Mkdir("adapter", 0o755), os.WriteFile("base.gguf", data, 0o644), os.WriteFile("adapter/"+gguf.AdapterConfig, settings, 0o644),
		os.WriteFile("adapter/"+gguf.AdapterWeights, weights, 0o644)); err != nil {
		t.Fatal(err)
	}
	name := s.Model(t, "scripted", script)
	install := func(code int, args ...string) {
		t.Helper()
		args = append([]string{"clarifier", "install", "--ollama-host", s.URL, "--from", "adapter"}, args...)
		out, errOut, got := command(t, "", args...)
		if got != code || !strings.Contains(out, "right: 6 of 12") || (code == 0) != strings.Contains(out, "is installed") {
			t.Fatalf("exit code %d, want %d\n%s%s", got, code, out, errOut)
		}
	}
	install(1, "--base", name)
	if r, err := s.API.List(t.Context()); err != nil || len(r.Models) != 1 {
		t.Fatalf("the server has %+v, error %v", r, err)
	}
	install(0, "--base", name, "--force", "--name", "adapted")
	install(0, "--base", "base.gguf", "--type", "f16", "--force", "--name", "merged")

	const end = "<|end_of_text|>\n"
	turns := []api.Message{{Role: "user", Content: "Which \"office\" is it?"}}
	documents := append([]api.Message{{Role: "document 7", Content: "The \"office\"."}, {Role: "document b", Content: "Another."}}, turns...)
	head := "You are a helpful assistant with access to the following documents. You may use one or more documents to assist with the user query.\n\n" +
		"You are given a list of documents within <documents></documents> XML tags:\n<documents>\n" +
		`{"text": "The \"office\".", "doc_id": "7"}` + "\n" + `{"text": "Another.", "doc_id": "b"}` + "\n</documents>\n\n" +
		"Write the response to the user's input by strictly aligning with the facts in the provided documents. " +
		"If the information needed to answer the question is not available in the documents, inform the user that the question cannot be answered based on the available data."
	asked := "<|start_of_role|>user<|end_of_role|>Which \"office\" is it?" + end + "<|start_of_role|>assistant<|end_of_role|>"
	for _, tc := range []struct {
		messages []api.Message
		want     string
	}{
		{turns, "You are a helpful assistant. Please ensure responses are professional, accurate, and safe."},
		{append([]api.Message{{Role: "system", Content: "Be brief."}}, turns...), "Be brief."},
		{documents, head},
		{append([]api.Message{{Role: "system", Content: "Be brief."}}, documents...), "Be brief.\n\n" + head},
	} {
		var said []string
		for _, model := range []string{"adapted", "merged"} {
			chat := func(debug bool) (out api.ChatResponse) {
				t.Helper()
				no := false
				err := s.API.Chat(t.Context(), &api.ChatRequest{Model: model, Messages: tc.messages, Stream: &no, DebugRenderOnly: debug,
					Options: map[string]any{"num_predict": 8, "num_ctx": 2048, "num_thread": 1}}, func(r api.ChatResponse) error { out = r; return nil })
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			if r := chat(true); r.DebugInfo == nil || r.DebugInfo.RenderedTemplate != "<|start_of_role|>system<|end_of_role|>"+tc.want+end+asked {
				t.Errorf("%s lays a chat out as\n%+v\nwant\n%s", model, r.DebugInfo, tc.want+end+asked)
			}
			said = append(said, chat(false).Message.Content)
		}
		if want := `{"clarification": "CLEAR"}`; said[0] != want || said[1] != want {
			t.Errorf("with the adapter %q, merged %q", said[0], said[1])
		}
	}
	for _, name := range []string{"adapted", "merged"} {
		if err := s.API.Delete(t.Context(), &api.DeleteRequest{Model: name}); err != nil && !errors.As(err, &api.StatusError{}) {
			t.Error(err)
		}
	}
}
