package ollama_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/askback/askback/generation"
	"github.com/askback/askback/generation/generatortest"
	"github.com/askback/askback/generation/ollama"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
)

var pieces = []string{"ANSWER:", " A deposit", " of 300", " [1]", " is blocked", " [7]", "."}

const whole = "A deposit of 300 [1] is blocked."

func TestRealServer(t *testing.T) {
	s := ollamatest.Start(t)
	config := tinygguf.Config{Context: 4096}
	writer := s.Model(t, "writer", tinygguf.Scripted(config, tinygguf.Say(pieces...)))
	model := func(name string) *ollama.Model {
		m, err := ollama.New(ollama.Options{Host: s.URL, Model: name, HTTP: s.HTTP, KeepAlive: "5m"})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	// The server's own OpenAI-compatible front, through langchaingo's client.
	compatible, err := openai.New(openai.WithBaseURL(s.URL+"/v1"), openai.WithToken("none"), openai.WithModel(writer), openai.WithHTTPClient(s.HTTP))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]llms.Model{"ollama": model(writer), "openai": compatible} {
		t.Run(name+" conforms", func(t *testing.T) {
			generatortest.Run(t, func(*testing.T) generation.Generator { return generation.Model{LLM: m} })
		})
		t.Run(name+" streams", func(t *testing.T) {
			var text strings.Builder
			deltas := 0
			var done *generation.Answer
			for e, err := range (generation.Model{LLM: m}).Generate(t.Context(), generatortest.Answerable()) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Delta != "" {
					deltas++
				}
				text.WriteString(e.Delta)
				done = e.Done
			}
			if done == nil || done.Text != whole || text.String() != whole || deltas < 2 || len(done.Citations) != 1 || strings.Join(done.Dropped, "") != "[7]" {
				t.Errorf("%d pieces, %q; %+v", deltas, &text, done)
			}
		})
	}
	t.Run("usage and schema", func(t *testing.T) {
		got, err := ask(t.Context(), model(writer))
		if err != nil || got.StopReason != "stop" || got.GenerationInfo["CompletionTokens"].(int) < len(pieces) || got.GenerationInfo["PromptTokens"].(int) == 0 {
			t.Errorf("%+v, error %v", got, err)
		}
		jsonModel := s.Model(t, "json", tinygguf.Scripted(config, tinygguf.Script{
			tinygguf.Start: {"no JSON": 0.9, `{"a": `: 0.1}, `{"a": `: {"x": 0.9, "7": 0.1}, "7": {"}": 1}, "x": {"}": 1},
		}))
		got, err = ask(t.Context(), model(jsonModel), ollama.WithSchema(json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`)))
		if err != nil || got.Content != `{"a": 7}` {
			t.Errorf("%+v, error %v; the schema should leave only {\"a\": 7}", got, err)
		}
	})
	t.Run("limit", func(t *testing.T) {
		endless := s.Model(t, "endless", tinygguf.Scripted(config, tinygguf.Repeat("and on ")))
		got, err := ask(t.Context(), model(endless), llms.WithMaxTokens(20))
		if err != nil || got.StopReason != "length" || got.Content != strings.Repeat("and on ", 20) {
			t.Errorf("%+v, error %v", got, err)
		}
	})
	t.Run("fifty stops", func(t *testing.T) {
		slow := tinygguf.Config{Layers: 2, FF: 8192} // some milliseconds a token, as models have
		m := model(s.Model(t, "endless-answer", tinygguf.Scripted(slow, tinygguf.Script{
			tinygguf.Start: {"ANSWER: yes [1] ": 1}, "ANSWER: yes [1] ": {"and on ": 1}, "and on ": {"and so on ": 1}, "and so on ": {"and on ": 1},
		})))
		stops(t, s, generation.Model{LLM: m, Options: []llms.CallOption{llms.WithMaxTokens(3500)}})
	})
	t.Run("too long", func(t *testing.T) {
		long := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, strings.Repeat("never cut me silently. ", 1000))}
		if got, err := model(writer).GenerateContent(t.Context(), long); !errors.Is(err, ollama.ErrTooLong) {
			t.Errorf("%+v, error %v; want that it is too long", got, err)
		}
	})
	t.Run("missing", func(t *testing.T) {
		if _, err := ask(t.Context(), model("missing")); !errors.Is(err, ollama.ErrNoModel) || !strings.Contains(err.Error(), "ollama pull missing") {
			t.Errorf("error %v", err)
		}
	})
}

// stops breaks off fifty answers in the middle. Nothing is left: no goroutine
// here, and no generation there.
func stops(t *testing.T, s *ollamatest.Server, g generation.Model) {
	if _, err := ask(t.Context(), g.LLM, llms.WithMaxTokens(1)); err != nil { // load the model
		t.Fatal(err)
	}
	s.HTTP.CloseIdleConnections()
	before := runtime.NumGoroutine()
	for i := range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		for _, err := range g.Generate(ctx, generatortest.Answerable()) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("stop %d: %v", i, err)
				}
				break
			}
			if i == 0 && runtime.GOOS == "linux" && os.Getenv("ASKBACK_TEST_OLLAMA") == "" && !s.Busy(t) {
				t.Error("the server is not seen generating, so that this test could not fail")
			}
			if i%2 == 0 {
				break
			}
			cancel()
		}
		cancel()
	}
	// A whole answer takes the server far longer than this.
	for deadline := time.Now().Add(4 * time.Second); s.Busy(t); {
		if time.Now().After(deadline) {
			t.Error("the server still generates")
			break
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s.HTTP.CloseIdleConnections()
		if n := runtime.NumGoroutine(); n <= before {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", n, before)
		}
	}
}

// A real server that is started anew between two turns is found again.
func TestRealRestart(t *testing.T) {
	s := ollamatest.Start(t)
	m, err := ollama.New(ollama.Options{Host: s.URL, Model: s.Model(t, "writer", tinygguf.Scripted(tinygguf.Config{}, tinygguf.Say(pieces...))), HTTP: s.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if got, err := ask(t.Context(), m); err != nil || got.Content != strings.Join(pieces, "") {
			t.Fatalf("turn %d: %+v, error %v", i, got, err)
		}
		s.Restart(t)
	}
}
