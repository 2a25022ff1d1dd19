package injection_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server"
)

// TestServer sends the tricks that aim at what is shown through the server: what
// it gives, as events and as JSON, is JSON in which no text can end a line, an
// event or the page that it stands in.
func TestServer(t *testing.T) {
	b, all, tried := newBench(t), scenes(t), 0
	for _, k := range tricks(t) {
		switch k.Kind {
		case "markup", "in a title", "in a file name", "hidden characters", "carries data out", "in front matter", "in the question":
		default:
			continue
		}
		tried++
		t.Run(k.Name, func(t *testing.T) {
			s := all[k.Scenes[0]]
			p := b.assistant(t, s.documents(t, k))
			handler := serve(t, p)
			question, _ := json.Marshal(map[string]string{"text": s.question(k)})
			events := eventsOf(t, call(t, handler, "POST", "/api/conversations/c/turns", "text/event-stream", string(question)))
			if len(events["result"]) != 1 || len(events["end"]) != 1 || len(events["error"]) != 0 {
				t.Fatalf("events %v", events)
			}
			var r pipeline.Record
			if err := json.Unmarshal([]byte(events["result"][0]), &r); err != nil {
				t.Fatal(err)
			}
			for _, fault := range s.faults(k, r) {
				t.Errorf("%s\n%s", fault, show(r))
			}
			for _, path := range []string{"/api/conversations/c", "/api/conversations", "/api/documents"} {
				if body := call(t, handler, "GET", path, "application/json", ""); !json.Valid([]byte(body)) {
					t.Errorf("%s gives no JSON: %s", path, body)
				}
			}
		})
	}
	if tried < 50 {
		t.Errorf("only %d tricks were tried", tried)
	}
}

func serve(t *testing.T, p assistant) http.Handler {
	t.Helper()
	s, err := server.New(server.Options{Log: slog.New(slog.DiscardHandler), Open: func(context.Context) (*server.Backend, error) {
		return &server.Backend{Pipeline: p.Pipeline, Store: p.store, Documents: &server.Documents{Library: p.index}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := s.Backend(); err == nil {
			return s.Handler()
		} else if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// call asks the server and gives the body.
func call(t *testing.T, h http.Handler, method, path, accept, body string) string {
	t.Helper()
	web := httptest.NewServer(h)
	defer web.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Content-Type", "application/json")
	answer, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode/100 != 2 || !strings.HasPrefix(kind, accept) || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("%s %s: %s, %s: %s", method, path, answer.Status, kind, data)
	}
	return string(data)
}

// eventsOf reads a stream of server-sent events by its lines.
func eventsOf(t *testing.T, body string) map[string][]string {
	t.Helper()
	out, name := map[string][]string{}, ""
	for line := range strings.Lines(body) {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			if !json.Valid([]byte(value)) || strings.ContainsAny(value, "<>\r") {
				t.Errorf("the data of %s is %s", name, value)
			}
			out[name] = append(out[name], value)
		case "", "id", "retry":
		default:
			t.Errorf("a line %q", line)
		}
	}
	return out
}
