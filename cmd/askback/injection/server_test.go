package injection_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server"
	"github.com/askback/askback/server/mcp"
	"github.com/askback/askback/server/openai"
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

// TestProtocols sends the same tricks through the protocols of OpenAI and MCP:
// what a client gets, whole or in pieces, and the passages that it may search
// for, carry nothing hidden, no marks of a chat template, and no markup.
func TestProtocols(t *testing.T) {
	b, all := newBench(t), scenes(t)
	for _, k := range tricks(t) {
		switch k.Kind {
		case "markup", "in a title", "in a file name", "hidden characters", "carries data out", "template marks":
		default:
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			s := all[k.Scenes[0]]
			p := b.assistant(t, s.documents(t, k))
			clean := func(where, text string, forbidden ...*regexp.Regexp) {
				for _, what := range append(forbidden, special, invisible) {
					if m := what.FindString(text); m != "" {
						t.Errorf("%s carries %q: %q", where, m, text)
					}
				}
			}
			v1 := openai.New(openai.Options{Log: slog.New(slog.DiscardHandler), Backend: func() (openai.Backend, error) {
				return openai.Backend{Pipeline: p.Pipeline, Store: p.store}, nil
			}})
			type message struct{ Content string }
			type completion struct {
				Choices []struct{ Message, Delta message }
			}
			question, _ := json.Marshal(s.question(k))
			ask := `{"model": "askback", "messages": [{"role": "user", "content": ` + string(question) + `}]`
			var whole completion
			if err := json.Unmarshal([]byte(call(t, v1, "POST", "/v1/chat/completions", "application/json", ask+`}`)), &whole); err != nil {
				t.Fatal(err)
			}
			clean("the completion", whole.Choices[0].Message.Content, markup)
			pieces := ""
			for line := range strings.Lines(call(t, v1, "POST", "/v1/chat/completions", "text/event-stream", ask+`, "stream": true}`)) {
				data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
				if !ok || data == "[DONE]" {
					continue
				}
				var c completion
				if err := json.Unmarshal([]byte(data), &c); err != nil || strings.ContainsAny(data, "<>") {
					t.Fatalf("%v: %s", err, data)
				}
				for _, choice := range c.Choices {
					pieces += choice.Delta.Content
				}
			}
			clean("the stream", pieces, markup)
			if pieces == "" || whole.Choices[0].Message.Content == "" {
				t.Error("nothing was said")
			}

			client, server := sdk.NewInMemoryTransports()
			ended := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				ended <- mcp.New(mcp.Options{Log: slog.New(slog.DiscardHandler), Backend: func(context.Context) (mcp.Backend, error) {
					return mcp.Backend{Pipeline: p.Pipeline, Retriever: p.index}, nil
				}}).Run(ctx, server)
			}()
			defer func() { cancel(); <-ended }()
			c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, client, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for tool, arguments := range map[string]map[string]any{"ask": {"question": s.question(k)}, "search": {"query": s.question(k)}} {
				r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
				if err != nil || r.IsError {
					t.Fatalf("%s: %v %+v", tool, err, r)
				}
				for _, content := range r.Content {
					if text := content.(*sdk.TextContent).Text; tool == "search" {
						clean(tool, text) // a document's words, markup and all
					} else if !json.Valid([]byte(text)) {
						clean(tool, text, markup)
					}
				}
			}
		})
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
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode/100 != 2 || !strings.HasPrefix(kind, accept) || strings.HasPrefix(path, "/api/") && answer.Header.Get("X-Content-Type-Options") != "nosniff" {
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
