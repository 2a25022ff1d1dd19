package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate/clarifiertest"
	"github.com/askback/askback/gate/prompted"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/generation/generatortest"
	ollamachat "github.com/askback/askback/generation/ollama"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
	"github.com/askback/askback/pipeline"
)

// command runs the program in an empty folder and gives what it printed.
func command(t *testing.T, in string, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, streams{strings.NewReader(in), &o, &e})
	return o.String(), e.String(), code
}

func record(t *testing.T, line string) pipeline.Record {
	t.Helper()
	var r pipeline.Record
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	return r
}

// The whole program with a real server: every word that the models say is
// scripted, so every word that the program prints is exact.
func TestWithModels(t *testing.T) {
	t.Chdir(t.TempDir())
	s := ollamatest.Start(t)
	t.Setenv("OLLAMA_HOST", s.URL)
	t.Setenv("ASKBACK_GATE_TIMEOUT", slow)
	t.Setenv("ASKBACK_CLARIFIER_TIMEOUT", slow)
	config := tinygguf.Config{Arch: "granite", Context: 32768}
	scripted := func(name string, script tinygguf.Script) string {
		return s.Model(t, name, tinygguf.Scripted(config, script))
	}
	chat := scripted("writer", tinygguf.Say("ANSWER: ", "Returns are free", " [1]", " within 30 days", " [9]", "."))
	none := scripted("says-none", tinygguf.Say("NOT_FOUND"))
	clear := scripted("says-clear", tinygguf.Say(`{"clarification": "`, "CLEAR", `"}`))
	asks := scripted("asks", tinygguf.Say(`{"clarification": "`, "Was it bought online, or bought in a shop?", `"}`))
	embedder := s.Model(t, "embedder", tinygguf.Random(tinygguf.Config{Pooling: 1, Context: 512}))
	if err := os.Mkdir("docs", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"online.md": "# Returns: bought online\n\nWhat was bought online can be returned within 30 days of delivery.\n",
		"shop.md":   "# Returns: bought in a shop\n\nWhat was bought in a shop can be returned within 14 days of purchase.\n",
	} {
		if err := os.WriteFile(filepath.Join("docs", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A question that either gate 2 alone would be unsure of, whatever its threshold.
	band := []string{"--docs=docs", "--json", "--pre-band=0,0", "--post-band=0,2"}
	question := "How many days do I have to return something?"

	out, errOut, code := command(t, "", append([]string{"ask", "--chat-model=" + chat, "--clarifier-model=" + clear, question}, band...)...)
	if code != exitAnswered {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	r := record(t, out)
	if r.Text != "Returns are free [1] within 30 days." || len(r.Citations) != 1 || r.Citations[0].Quote == "" || !strings.Contains(strings.Join(r.Trace.Notes, " "), "[9]") {
		t.Errorf("%q, citations %+v, notes %q", r.Text, r.Citations, r.Trace.Notes)
	}
	if n := len(r.Trace.Gates); n != 2 || r.Trace.Gates[0].Second != "spared" || r.Trace.Gates[1].Second != "asked" || r.Trace.Saved != 1 {
		t.Errorf("gates %+v, %d calls saved", r.Trace.Gates, r.Trace.Saved)
	}

	out, errOut, code = command(t, question+"\nbought online\n", append([]string{"chat", "--chat-model=" + chat, "--clarifier-model=" + asks}, band...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitAnswered || len(lines) != 2 {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	r = record(t, lines[0])
	if r.Text != "Was it bought online, or bought in a shop?" || len(r.Options) != 2 || r.Options[0].Text != "bought online" || len(r.Options[0].Passages) != 1 || string(r.Gate) != "post" {
		t.Errorf("%+v", r)
	}
	if r = record(t, lines[1]); r.Text != "Returns are free [1] within 30 days." || !strings.Contains(r.Question, "bought online") || r.Citations[0].Title != "Returns: bought online" {
		t.Errorf("%+v", r)
	}

	out, _, code = command(t, "", "ask", "--docs=docs", "--json", "--chat-model="+none, "--max-asks=0", question)
	if r := record(t, out); code != exitNoAnswer || r.Kind != "no_answer" {
		t.Errorf("exit code %d: %+v", code, r)
	}

	// The same through the server's OpenAI-compatible front.
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "none")
	out, errOut, code = command(t, "", "ask", "--docs=docs", "--json", "--chat-model=openai:"+chat, "--max-asks=0", question)
	if code != exitAnswered || record(t, out).Text != "Returns are free [1] within 30 days." {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}

	// A clarifier model that is missing leaves the embedded one alone, and says so.
	out, _, code = command(t, "", append([]string{"ask", "--clarifier-model=missing", question}, band...)...)
	if r := record(t, out); code == exitFailed || r.Trace.Gates[1].Second != "failed" || !strings.Contains(r.Trace.Gates[1].SecondError, "ollama pull missing") {
		t.Errorf("exit code %d: %+v", code, r.Trace.Gates)
	}
	// A chat model that is missing is an error that says what to do.
	if _, errOut, code = command(t, "", "ask", "--docs=docs", "--chat-model=missing", "--max-asks=0", question); code != exitFailed || !strings.Contains(errOut, "ollama pull missing") {
		t.Errorf("exit code %d: %s", code, errOut)
	}

	// An index is tied to the embedder that made it.
	if out, errOut, code = command(t, "", "ingest", "docs", "--index=index.db", "--embedding-model="+embedder); code != exitAnswered || !strings.Contains(out, "2 new") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	if out, _, code = command(t, "", "ask", "--index=index.db", "--embedding-model="+embedder, "--json", "--max-asks=0", "bought in a shop, returned within?"); code == exitFailed || len(record(t, out).Trace.Passages) != 2 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, errOut, code = command(t, "", "ask", "--index=index.db", "--max-asks=0", question); code != exitFailed || !strings.Contains(errOut, "made with another embedder") {
		t.Errorf("exit code %d: %s", code, errOut)
	}

	t.Run("doctor", func(t *testing.T) {
		if err := os.WriteFile(".env", []byte("ASKBACK_TEST_PASSWORD=blue$7Kite#9\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Unsetenv("ASKBACK_TEST_PASSWORD")
		out, errOut, code := command(t, "", "doctor", "--chat-model="+chat, "--embedding-model="+embedder, "--clarifier-model="+asks, "--index=index.db")
		for _, want := range []string{
			"warn  settings", ".env line 1, ASKBACK_TEST_PASSWORD", "ok    clarifier ", "ok    ollama           version 0.17.4 at " + s.URL,
			"ok    embedding model  " + embedder, "vectors of 64 numbers", "ok    chat model       " + chat, "reads 32768 tokens",
			"warn  clarifier model  " + asks + ": trial of a clear and an unclear question, 1 of 2 right", "index.db: 2 documents, made with the embedder in use",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing", want)
			}
		}
		if code != exitAnswered || strings.Contains(out, "Kite") || t.Failed() {
			t.Errorf("exit code %d:\n%s%s", code, out, errOut)
		}
		out, _, code = command(t, "", "doctor", "--chat-model=granite4:micro", "--clarifier-model=query-clarification", "--index=index.db", "--json")
		var checks []finding
		if err := json.Unmarshal([]byte(out), &checks); err != nil {
			t.Fatal(err)
		}
		failed := map[string]string{}
		for _, k := range checks {
			if k.State == stateFailed {
				failed[k.Name] = k.Do
			}
		}
		if code != exitFailed || len(failed) != 3 || failed["chat model"] != "ollama pull granite4:micro" || !strings.Contains(failed["clarifier model"], "clarifier install") || !strings.Contains(failed["index"], "ingest anew") {
			t.Errorf("exit code %d, failed %q\n%s", code, failed, out)
		}
	})
}

// Settings that make no sense fail at the start and name their variable.
func TestModelSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct {
		name  string
		env   map[string]string
		args  []string
		code  int
		says  string
		after func()
	}{
		{name: "keep-alive", env: map[string]string{"ASKBACK_KEEP_ALIVE": "for ever"}, args: []string{"ask", "--chat-model=m", "hello"}, code: exitUsage, says: "ASKBACK_KEEP_ALIVE"},
		{name: "the server's own keep-alive", env: map[string]string{"OLLAMA_KEEP_ALIVE": "soon"}, args: []string{"ask", "--clarifier-model=m", "hello"}, code: exitUsage, says: "OLLAMA_KEEP_ALIVE"},
		{name: "keep-alive of the embedder", env: map[string]string{"ASKBACK_KEEP_ALIVE": "x"}, args: []string{"ask", "--embedding-model=m", "hello"}, code: exitUsage, says: "ASKBACK_KEEP_ALIVE"},
		{name: "host", env: map[string]string{"OLLAMA_HOST": "ftp://box"}, args: []string{"ask", "--chat-model=m", "hello"}, code: exitUsage, says: "OLLAMA_HOST"},
		{name: "band", args: []string{"ask", "--clarifier-model=m", "--pre-band=0.8,0.2", "hello"}, code: exitUsage, says: "--pre-band"},
		{name: "embedder is not reachable", env: map[string]string{"OLLAMA_HOST": "127.0.0.1:1"}, args: []string{"ask", "--embedding-model=m", "hello"}, code: exitFailed, says: "ollama serve"},
		{name: "doctor, nothing there", env: map[string]string{"OLLAMA_HOST": "127.0.0.1:1"}, args: []string{"doctor", "--chat-model=m"}, code: exitFailed, says: ""},
		{name: "doctor, nothing set", args: []string{"doctor"}, code: exitAnswered, says: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			if out, errOut, code := command(t, "", tc.args...); code != tc.code || !strings.Contains(errOut, tc.says) {
				t.Errorf("exit code %d, want %d; %s%s, want %q", code, tc.code, out, errOut, tc.says)
			}
		})
	}
	for value, sent := range map[string]string{"-1": "-1", "0": `"0s"`, "300": `"5m0s"`, "5m": `"5m0s"`} {
		f := ollamatest.NewFake(t, ollamatest.Turn{Pieces: []string{"NOT_FOUND"}})
		t.Setenv("OLLAMA_KEEP_ALIVE", value)
		t.Setenv("OLLAMA_HOST", f.URL)
		_, errOut, code := command(t, "", "ask", "--chat-model=fake", "--max-asks=0", "What is the rental deposit?")
		if code != exitNoAnswer || len(f.Sent()) != 1 || !strings.Contains(f.Sent()[0], `"keep_alive":`+sent) {
			t.Errorf("keep-alive %s: exit code %d, sent %.300s %s", value, code, f.Sent(), errOut)
		}
	}
}

// The model that writes the answers also reads what the rules are unsure of.
func TestChatModelReads(t *testing.T) {
	t.Chdir(t.TempDir())
	f := ollamatest.NewFake(t,
		ollamatest.Turn{Pieces: []string{"NOT_FOUND"}},
		ollamatest.Turn{Pieces: []string{`{"question": "How long does the rental deposit last?"}`}},
		ollamatest.Turn{Pieces: []string{"NOT_FOUND"}},
		ollamatest.Turn{Pieces: []string{`{"kind": "choice", "options": ["2"], "detail": ""}`}},
	)
	t.Setenv("OLLAMA_HOST", f.URL)
	out, errOut, _ := command(t, "What is the rental deposit?\nHow long does it last?\n", "chat", "--json", "--chat-model=fake", "--max-asks=0")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || record(t, lines[1]).Question != "How long does the rental deposit last?" {
		t.Errorf("%s%s", out, errOut)
	}
	var parts pipeline.Parts
	if err := (chatFlags{ChatModel: "fake"}).wire(&parts, serverFlags{OllamaHost: f.URL}, nil); err != nil {
		t.Fatal(err)
	}
	p := conversation.Pending{Question: "What is the deposit?", Text: "Which one?", Options: []conversation.Option{{ID: "1", Text: "City 2"}, {ID: "2", Text: "Cargo 2"}}}
	r, err := parts.Readers[0].Read(t.Context(), p, "what I carry boxes with", conversation.Folded{})
	if err != nil || r.Kind != conversation.ReplyChoice || len(r.Options) != 1 || r.Options[0] != "2" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A real language model, small as it is and untuned, through the whole way: it
// streams an answer whose citations hold, and decides at a gate by the schema.
// What it says is not judged.
func TestWithGemma(t *testing.T) {
	s := ollamatest.Start(t)
	m, err := ollamachat.New(ollamachat.Options{Host: s.URL, Model: s.Gemma(t), HTTP: s.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	request := generatortest.Answerable()
	for i, text := range []string{ // a base model goes on as the dialogue began
		"When is the desk open on weekdays?", "ANSWER: The desk is open from 8 to 20 on weekdays. [2]",
		"Is it open on Sunday?", "ANSWER: On Sunday it is closed. [2]",
	} {
		request.History = append(request.History, conversation.Message{Role: []conversation.Role{conversation.User, conversation.Assistant}[i%2], Text: text})
	}
	pieces := 0
	g := generation.Model{LLM: counting{m, &pieces}, Options: []llms.CallOption{llms.WithMaxTokens(60), llms.WithStopWords([]string{"\n"})}}
	a, err := generatortest.Collect(t.Context(), g, request)
	if err != nil || !a.Found || len(a.Citations) == 0 || pieces < 5 {
		t.Errorf("%d pieces, %+v, error %v", pieces, a, err)
	} else if err := generatortest.Check(request, a); err != nil {
		t.Errorf("%v in %+v", err, a)
	}
	c, err := prompted.New(m, prompted.Options{Call: []llms.CallOption{ollamachat.WithSchema(prompted.Schema)}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.Clarify(t.Context(), trialCases[1].request)
	if err != nil {
		t.Fatal(err)
	}
	clarifiertest.Check(t, trialCases[1].request, v)
	t.Logf("%d pieces: %q; the gate: %+v", pieces, a.Text, v)
}

// counting counts the pieces that a model streams.
type counting struct {
	llms.Model
	pieces *int
}

func (c counting) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	return c.Model.GenerateContent(ctx, messages, append(options, llms.WithStreamingFunc(func(ctx context.Context, b []byte) error {
		*c.pieces++
		return o.StreamingFunc(ctx, b)
	}))...)
}
