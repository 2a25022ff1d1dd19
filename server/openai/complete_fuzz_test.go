package openai_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server/internal/fakes"
	"github.com/askback/askback/server/openai"
)

// recorder is a response with the control that a connection's has.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetWriteDeadline(time.Time) error { return nil }
func (recorder) SetReadDeadline(time.Time) error  { return nil }

// FuzzComplete posts anything: a completion, a stream with its end or an error in
// OpenAI's form comes back, and the next request is answered.
func FuzzComplete(f *testing.F) {
	for _, seed := range []string{
		`{"model":"askback","messages":[{"role":"user","content":"What is the deposit?"}]}`,
		`{"model":"askback","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"When are you open?"}]}`,
		`{"messages":[{"role":"user","content":"What is the deposit?"},{"role":"assistant","content":"City or Cargo?"},{"role":"user","content":"2"}]}`,
		`{"messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"How much is it?"}]}],"askback":{"conversation":"c","key":"k","user":"u"}}`,
		`{"messages":[{"role":"user","content":"x"}],"askback":{"conversation":"..","choice":"1"}}`,
		`{"messages":[{"role":"user","content":"x"}],"askback":{"conversation":"` + strings.Repeat("c", 2000) + `"},"stream":true}`,
		`{"messages":[{"role":"user","content":"` + "\xff\u0000" + `"}],"n":1e9,"max_tokens":-1,"tools":[{}]}`,
		`{"messages":[]}`, `[]`, `null`, `{`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		store := conversation.NewMemory()
		p, err := fakes.Pipeline(store, &fakes.Quoter{})
		if err != nil {
			t.Fatal(err)
		}
		h := openai.New(openai.Options{Log: quiet, Backend: func() (openai.Backend, error) { return openai.Backend{Pipeline: p, Store: store}, nil }})
		post := func(body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/chat/completions", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(recorder{w}, r)
			return w
		}
		w := post(body)
		switch kind := w.Header().Get("Content-Type"); {
		case w.Code >= 500:
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		case w.Code >= 400:
			var e struct {
				Error struct{ Message, Type string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
				t.Errorf("%q: %d %s", body, w.Code, w.Body)
			}
		case strings.HasPrefix(kind, "text/event-stream"):
			if !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") {
				t.Errorf("%q: a stream without an end: %s", body, w.Body)
			}
		default:
			var c struct {
				Choices []struct{ Message struct{ Content string } }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil || len(c.Choices) != 1 || c.Choices[0].Message.Content == "" {
				t.Errorf("%q: %d %s", body, w.Code, w.Body)
			}
		}
		if w := post(`{"messages":[{"role":"user","content":"When are you open?"}]}`); w.Code != http.StatusOK {
			t.Errorf("after %q: %d %s", body, w.Code, w.Body)
		}
	})
}
