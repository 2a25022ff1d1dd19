package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askback/askback/pipeline"
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
