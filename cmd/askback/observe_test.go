package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/telemetry"
)

// TestServeIsSeen sends a turn with a trace of its own: its spans are sent on in that
// trace before the program ends, the log has a line, and neither holds the question.
func TestServeIsSeen(t *testing.T) {
	var mu sync.Mutex
	var sent bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/v1/traces" {
			sent.Write(data)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s := serve(t, "--addr", "127.0.0.1:0", "--log", "json")
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	r, err := http.NewRequest("POST", s.url+"/api/conversations/seen/turns", strings.NewReader(`{"text": "What is the rental deposit?"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "seen-1")
	r.Header.Set("Traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", response.Status, answer)
	}
	response, err = http.Post(s.url+"/metrics", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") == "" {
		t.Errorf("POST /metrics: %s, Allow %q", response.Status, response.Header.Get("Allow"))
	}
	http.DefaultClient.CloseIdleConnections()
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, &s.err)
	}
	mu.Lock()
	defer mu.Unlock()
	trace := []byte{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36}
	for _, want := range []string{string(trace), "invoke_agent askback", "gate post", "retrieve", "clarification"} {
		if !strings.Contains(sent.String(), want) {
			t.Errorf("the spans do not hold %q", want)
		}
	}
	for _, want := range []string{`"msg":"turn"`, `"msg":"request"`, `"route":"/api/conversations/{conversation}/turns"`, `"request":"seen-1"`, `"result":"clarification"`, `"conversation":"seen"`, `"gate":"post"`, `"trace_id":"` + id + `"`} {
		if !strings.Contains(s.err.String(), want) {
			t.Errorf("the log does not hold %s: %s", want, &s.err)
		}
	}
	if strings.Contains(sent.String()+s.err.String(), "deposit") {
		t.Error("the question is in the spans or the log")
	}
}

// TestTokensAreSeen lets a model write an answer: what its server counts stands in the
// reply to an OpenAI client, whole and streamed, in the trace, the log, the metrics and
// the spans.
func TestTokensAreSeen(t *testing.T) {
	var mu sync.Mutex
	var sent bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent.Write(data)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	model := ollamatest.NewFake(t, ollamatest.Turn{Pieces: []string{"ANSWER: ", "It is on. ", "[1]"}}) // which counts 10 and 3
	s := serve(t, "--addr", "127.0.0.1:0", "--log", "json", "--max-asks", "0", "--chat-model", "fake", "--ollama-host", model.URL)
	post := func(path, body string) string {
		r, err := http.Post(s.url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		data, _ := io.ReadAll(r.Body)
		if r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", path, r.Status, data)
		}
		return string(data)
	}
	const counted = `"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}`
	const question = `"messages":[{"role":"user","content":"How long does charging the battery of the Cargo 2 take?"}]`
	for _, body := range []string{"{" + question + "}", `{"stream":true,"stream_options":{"include_usage":true},` + question + "}"} {
		if reply := post("/v1/chat/completions", body); !strings.Contains(reply, counted) {
			t.Errorf("%s: no %s in %s", body, counted, reply)
		}
	}
	if reply := post("/api/conversations/seen/turns", `{"text": "How long does charging the battery of the Cargo 2 take?"}`); !strings.Contains(strings.ReplaceAll(reply, " ", ""), `"usage":{"input_tokens":10,"output_tokens":3}`) {
		t.Errorf("the trace has no tokens: %s", reply)
	}
	r, err := http.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(r.Body)
	r.Body.Close()
	for _, line := range []string{
		`gen_ai_client_token_usage_sum{askback_stage="generate",gen_ai_operation_name="chat",gen_ai_provider_name="ollama",gen_ai_request_model="fake",gen_ai_token_type="input"} 30`,
		`gen_ai_client_token_usage_sum{askback_stage="generate",gen_ai_operation_name="chat",gen_ai_provider_name="ollama",gen_ai_request_model="fake",gen_ai_token_type="output"} 9`,
		`askback_stage_duration_seconds_count{askback_stage="commit"} 3`,
	} {
		if !strings.Contains(string(page), line) {
			t.Errorf("/metrics does not hold %s", line)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, &s.err)
	}
	if n := strings.Count(s.err.String(), `"input_tokens":10,"output_tokens":3`); n != 3 {
		t.Errorf("%d lines of the log have the tokens, want 3: %s", n, &s.err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"chat fake", "commit", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} {
		if !strings.Contains(sent.String(), want) {
			t.Errorf("the spans do not hold %q", want)
		}
	}
}

// TestAsked names the models of the stages as OpenTelemetry does.
func TestAsked(t *testing.T) {
	larkwheel, clear := telemetry.Model{Name: "larkwheel-7b", Provider: "ollama"}, telemetry.Model{Name: "clear-1b", Provider: "openai"}
	for _, c := range []struct {
		chat, clarifier string
		want            telemetry.Models
	}{
		{"", "", telemetry.Models{}},
		{"larkwheel-7b", "", telemetry.Models{"generate": larkwheel, "rewrite": larkwheel, "fold": larkwheel}},
		{"", "prompted:openai:clear-1b", telemetry.Models{"gate pre": clear, "gate post": clear}},
		{"openai:clear-1b", "larkwheel-7b", telemetry.Models{"generate": clear, "rewrite": clear, "fold": clear, "gate pre": larkwheel, "gate post": larkwheel}},
	} {
		var s serveCommand
		s.ChatModel, s.ClarifierModel = c.chat, c.clarifier
		if got := s.asked(); !maps.Equal(got, c.want) {
			t.Errorf("%q and %q: %v, want %v", c.chat, c.clarifier, got, c.want)
		}
	}
}

// TestTracesOff sets variables of OpenTelemetry with which nothing is sent.
func TestTracesOff(t *testing.T) {
	asked := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer collector.Close()
	for _, c := range []struct {
		name, value string
		sends       bool
	}{
		{"OTEL_SDK_DISABLED", "true", false}, {"OTEL_TRACES_EXPORTER", "none", false}, {"OTEL_TRACES_EXPORTER", "otlp", true},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
			t.Setenv(c.name, c.value)
			traces, end, err := newTraces(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			traces.Observe(t.Context(), pipeline.Outcome{Err: context.Canceled, Began: time.Now(), Elapsed: 1})
			if err := end(); err != nil {
				t.Error(err)
			}
			select {
			case path := <-asked:
				if !c.sends {
					t.Errorf("spans were sent to %s", path)
				}
			default:
				if c.sends {
					t.Error("no span was sent")
				}
			}
		})
	}
}
