package ollama_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"
	"go.uber.org/goleak"

	"github.com/askback/askback/generation"
	"github.com/askback/askback/generation/generatortest"
	"github.com/askback/askback/generation/ollama"
	"github.com/askback/askback/internal/ollamatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fake(t *testing.T, turns ...ollamatest.Turn) (*ollamatest.Fake, *ollama.Model) {
	t.Helper()
	f := ollamatest.NewFake(t, turns...)
	m, err := ollama.New(ollama.Options{Host: f.URL, Model: "fake", HTTP: f.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	return f, m
}

func ask(ctx context.Context, m llms.Model, options ...llms.CallOption) (*llms.ContentChoice, error) {
	r, err := m.GenerateContent(ctx, []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "hello")}, options...)
	if err != nil {
		return nil, err
	}
	return r.Choices[0], nil
}

// Whatever goes wrong on the way is an error that says so, never half an answer
// taken for a whole one.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name string
		turn ollamatest.Turn
		is   error
		says string
	}{
		{"cut in the middle", ollamatest.Turn{Pieces: []string{"The deposit ", "is"}, Cut: true}, ollama.ErrCut, "closed the stream"},
		{"no end mark", ollamatest.Turn{Pieces: []string{"The deposit is 300."}, NoEnd: true}, ollama.ErrCut, "closed the stream"},
		{"empty body", ollamatest.Turn{}, ollama.ErrCut, "closed the stream"},
		{"500", ollamatest.Turn{Status: 500, Body: "llama runner process has terminated"}, nil, "status 500: llama runner process has terminated; its log says more"},
		{"400", ollamatest.Turn{Status: 400, Body: "bad\x1b[31m request"}, nil, "status 400: bad [31m request"},
		{"401", ollamatest.Turn{Status: 401, Body: "who are you?"}, nil, "sign-in"},
		{"model is gone", ollamatest.Turn{Status: 404, Body: "model 'fake' not found"}, ollama.ErrNoModel, "ollama pull fake"},
		{"broken JSON", ollamatest.Turn{Pieces: []string{"The"}, Body: `{"message":{"content":"dep`}, nil, "failed"},
		{"an error in the stream", ollamatest.Turn{Pieces: []string{"The"}, Body: `{"error":"out of memory"}` + "\n"}, nil, "out of memory"},
		{"HTML of a proxy", ollamatest.Turn{Body: "<html>gateway</html>"}, nil, "failed"},
		{"too long", ollamatest.Turn{Status: 400, Body: "the input length exceeds the context length"}, ollama.ErrTooLong, "longer than the model can read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, m := fake(t, tc.turn)
			got, err := ask(t.Context(), m)
			if err == nil {
				t.Fatalf("no error, and the answer %q", got.Content)
			}
			if tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("error %q, want %v, %q", err, tc.is, tc.says)
			}
			if _, err := generatortest.Collect(t.Context(), generation.Model{LLM: m}, generatortest.Answerable()); err == nil {
				t.Error("the generator gives an answer all the same")
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	f, m := fake(t, ollamatest.Turn{Pieces: []string{"hello"}})
	f.Close()
	_, err := ask(t.Context(), m)
	if !errors.Is(err, ollama.ErrUnreachable) || !strings.Contains(err.Error(), "ollama serve") || !strings.Contains(err.Error(), f.URL) {
		t.Errorf("error %v", err)
	}
	missing, err := ollama.New(ollama.Options{Host: f.URL, Model: "other", HTTP: f.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), missing); !errors.Is(err, ollama.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
}

func TestMissingModel(t *testing.T) {
	f, _ := fake(t, ollamatest.Turn{})
	m, err := ollama.New(ollama.Options{Host: f.URL, Model: "granite4:micro", HTTP: f.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), m); !errors.Is(err, ollama.ErrNoModel) || !strings.Contains(err.Error(), "ollama pull granite4:micro") {
		t.Errorf("error %v", err)
	}
}

func TestSlowFirstToken(t *testing.T) {
	_, m := fake(t, ollamatest.Turn{Wait: time.Minute, Pieces: []string{"late"}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ask(ctx, m); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that the time is over", err)
	}
}

// A model that repeats itself ends at the limit, which is no answer; a server
// that does not keep to the limit is left.
func TestEndlessRepetition(t *testing.T) {
	_, m := fake(t, ollamatest.Turn{Pieces: []string{"and on ", "and on "}, Endless: true})
	if _, err := ask(t.Context(), m, llms.WithMaxTokens(50)); err == nil || !strings.Contains(err.Error(), "went on after the 50 tokens") {
		t.Errorf("error %v", err)
	}
	_, m = fake(t, ollamatest.Turn{Pieces: []string{"ANSWER: and on [1] and on"}, Reason: "length"})
	if got, err := ask(t.Context(), m); err != nil || got.StopReason != "length" {
		t.Errorf("%+v, error %v", got, err)
	}
	if _, err := generatortest.Collect(t.Context(), generation.Model{LLM: m}, generatortest.Answerable()); !errors.Is(err, generation.ErrCut) {
		t.Errorf("error %v, want ErrCut", err)
	}
}

func TestThoughtsAreKeptApart(t *testing.T) {
	f, m := fake(t, ollamatest.Turn{Thinking: []string{"They want ", "300."}, Pieces: []string{"ANSWER: 300 [1]."}})
	f.Features = []string{"completion", "thinking"}
	var streamed, thought strings.Builder
	got, err := ask(t.Context(), m, llms.WithThinkingMode(llms.ThinkingModeLow), llms.WithStreamingReasoningFunc(func(_ context.Context, t, c []byte) error {
		thought.Write(t)
		streamed.Write(c)
		return nil
	}))
	if err != nil || got.Content != "ANSWER: 300 [1]." || got.ReasoningContent != "They want 300." || streamed.String() != got.Content || thought.String() != got.ReasoningContent {
		t.Errorf("%+v, error %v; streamed %q and %q", got, err, &streamed, &thought)
	}
	if _, err := ask(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	asked := f.Asked()
	if asked[0].Think == nil || asked[0].Think.Value != "low" || asked[1].Think == nil || asked[1].Think.Value != false {
		t.Errorf("asked to think: %+v, then %+v; want low, then false", asked[0].Think, asked[1].Think)
	}
	plain, m := fake(t, ollamatest.Turn{Pieces: []string{"x"}})
	if _, err := ask(t.Context(), m); err != nil || plain.Asked()[0].Think != nil {
		t.Errorf("a model that cannot think is told about thinking; error %v", err)
	}
}

func TestRequest(t *testing.T) {
	f := ollamatest.NewFake(t, ollamatest.Turn{Pieces: []string{"x"}})
	m, err := ollama.New(ollama.Options{Host: f.URL, Model: "fake", HTTP: f.HTTP, KeepAlive: "-1", Settings: map[string]any{"num_thread": 1}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.GenerateContent(t.Context(), []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, "be brief"), llms.TextParts(llms.ChatMessageTypeHuman, "a", "b"), llms.TextParts(llms.ChatMessageTypeAI, "c"),
		{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.BinaryPart("image/png", []byte("png")), llms.TextPart("what is this?")}},
	}, llms.WithTemperature(0.5), llms.WithSeed(7), llms.WithTopK(3), llms.WithStopWords([]string{"x"}), llms.WithMaxTokens(9), ollama.WithSchema(json.RawMessage(`{"type":"object"}`)))
	if err != nil {
		t.Fatal(err)
	}
	sent := f.Sent()[0]
	want := `{"model":"fake","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"a\nb"},{"role":"assistant","content":"c"},` +
		`{"role":"user","content":"what is this?","images":["cG5n"]}],"stream":false,"format":{"type":"object"},"keep_alive":-1,` +
		`"options":{"num_ctx":4096,"num_predict":9,"num_thread":1,"seed":7,"stop":["x"],"temperature":0.5,"top_k":3},"truncate":false,"shift":false}`
	if sent != want {
		t.Errorf("sent %s\nwant %s", sent, want)
	}
	for name, options := range map[string][]llms.CallOption{
		"tools":         {llms.WithTools([]llms.Tool{{Type: "function"}})},
		"candidates":    {llms.WithN(2)},
		"least length":  {llms.WithMinLength(5)},
		"length":        {llms.WithMaxLength(5)},
		"MIME type":     {llms.WithResponseMIMEType("text/html")},
		"broken schema": {ollama.WithSchema(json.RawMessage(`{`))},
	} {
		if _, err := ask(t.Context(), m, options...); err == nil {
			t.Errorf("%s: taken without a word", name)
		}
	}
	for name, message := range map[string]llms.MessageContent{
		"tool":  {Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{}}},
		"link":  {Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.ImageURLPart("http://example.com/a.png")}},
		"audio": {Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.BinaryPart("audio/wav", nil)}},
	} {
		if _, err := m.GenerateContent(t.Context(), []llms.MessageContent{message}); err == nil {
			t.Errorf("%s: taken without a word", name)
		}
	}
}

// The context grows with the prompt and does not shrink, since a server loads
// the model anew for each size; beyond the model's own it is an error.
func TestContextFitsThePrompt(t *testing.T) {
	f, m := fake(t, ollamatest.Turn{Pieces: []string{"x"}})
	f.Context = 20_000
	long := func(n int) []llms.MessageContent {
		return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, strings.Repeat("word ", n))}
	}
	for _, n := range []int{10, 4000, 10, 50_000} {
		if _, err := m.GenerateContent(t.Context(), long(n)); err != nil {
			t.Fatal(err)
		}
	}
	want := []float64{4096, 8192, 8192, 20_000}
	for i, q := range f.Asked() {
		if q.Options["num_ctx"] != want[i] || q.Truncate == nil || *q.Truncate {
			t.Errorf("request %d: num_ctx %v, truncate %v; want %v, false", i, q.Options["num_ctx"], q.Truncate, want[i])
		}
	}
	short := ollamatest.NewFake(t, ollamatest.Turn{Status: 400, Body: "the input length exceeds the context length"}, ollamatest.Turn{Pieces: []string{"x"}})
	m, err := ollama.New(ollama.Options{Host: short.URL, Model: "fake", HTTP: short.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), m); err != nil || short.Asked()[1].Options["num_ctx"] != 8192. {
		t.Errorf("an estimate that was short is not made good: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		o    ollama.Options
		says string // "" if it is taken
	}{
		{ollama.Options{Model: "m", KeepAlive: "-1"}, ""},
		{ollama.Options{Model: "m", KeepAlive: "0"}, ""},
		{ollama.Options{Model: "m", KeepAlive: "300"}, ""},
		{ollama.Options{Model: "m", KeepAlive: "5m", Host: "gpu-box"}, ""},
		{ollama.Options{Model: "m", Host: "http://10.0.0.3:80/ollama"}, ""},
		{ollama.Options{Model: "m", Host: "0.0.0.0:11434"}, ""},
		{ollama.Options{Model: "m", Host: "[::1]:11434"}, ""},
		{ollama.Options{}, "set Model"},
		{ollama.Options{Model: "m", KeepAlive: "for ever"}, `keep-alive "for ever"`},
		{ollama.Options{Model: "m", KeepAlive: "5 minutes"}, "keep-alive"},
		{ollama.Options{Model: "m", KeepAlive: "99999999999999"}, "too long"},
		{ollama.Options{Model: "m", Host: "ftp://box"}, "http"},
		{ollama.Options{Model: "m", Host: "box:99999"}, "port"},
		{ollama.Options{Model: "m", Host: "http://user:secret@box"}, "user"},
		{ollama.Options{Model: "m", Think: "hard"}, "think"},
	} {
		_, err := ollama.New(tc.o)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v: error %v, want %q", tc.o, err, tc.says)
		}
	}
}

func TestGeneratorConforms(t *testing.T) {
	generatortest.Run(t, func(t *testing.T) generation.Generator {
		_, m := fake(t, ollamatest.Turn{Pieces: []string{"ANSW", "ER: A deposit of 300 is bl", "ocked [", "1]. It is ", "released in 5 days [1]."}})
		return generation.Model{LLM: m}
	})
}

// Fifty stops in mid-answer, by the caller's context and by leaving the stream,
// leave no goroutine and nothing running on the server.
func TestFiftyStops(t *testing.T) {
	f, m := fake(t, ollamatest.Turn{Pieces: []string{"ANSWER: A deposit [1]", " and on", " and on"}, Endless: true, Between: time.Millisecond})
	g := generation.Model{LLM: m, Options: []llms.CallOption{llms.WithMaxTokens(1 << 20)}}
	before := runtime.NumGoroutine()
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		for _, err := range g.Generate(ctx, generatortest.Answerable()) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("stop %d: %v", i, err)
				}
				break
			}
			if n++; n > 2 && i%2 == 0 {
				break
			}
			if n > 2 {
				cancel()
			}
		}
		cancel()
	}
	settled(t, f, before)
	stop := errors.New("enough")
	if _, err := ask(t.Context(), m, llms.WithMaxTokens(1<<20), llms.WithStreamingFunc(func(context.Context, []byte) error { return stop })); !errors.Is(err, stop) {
		t.Errorf("error %v, want the callback's own", err)
	}
	settled(t, f, before)
}

func settled(t *testing.T, f *ollamatest.Fake, before int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		f.HTTP.CloseIdleConnections()
		active, now := f.Active(), runtime.NumGoroutine()
		if active == 0 && now <= before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d answers still run on the server; %d goroutines, %d before", active, now, before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A server that was started again between two turns is found again.
func TestRestartBetweenTurns(t *testing.T) {
	f, m := fake(t, ollamatest.Turn{Pieces: []string{"one"}})
	if _, err := ask(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	f.Restart(t)
	if _, err := ask(t.Context(), m); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}
