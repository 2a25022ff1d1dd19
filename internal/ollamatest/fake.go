package ollamatest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
)

// Fake stands in for a server, with faults: it has one model, "fake", and
// answers each chat with the next of its turns.
type Fake struct {
	URL      string
	HTTP     *http.Client
	Context  int      // that the model can read; 0: 8192
	Features []string // of the model; nil: completion
	Vector   func(text string) []float32

	server *httptest.Server
	mu     sync.Mutex
	turns  []Turn
	asked  []api.ChatRequest
	sent   []string // the same, as they came
	active int      // chats that are being answered
	embeds [][]string
}

// Turn is how a Fake answers one chat.
type Turn struct {
	Status   int           // if not 200, with Body
	Body     string        // raw, instead of pieces
	Wait     time.Duration // before the first piece
	Pieces   []string
	Thinking []string // before the pieces
	Between  time.Duration
	Cut      bool // the connection breaks off
	NoEnd    bool // the stream ends without its end mark
	Endless  bool // the pieces are said again and again
	Reason   string
	Logprobs [][]api.TokenLogprob // of the pieces: for each its own first, then the alternatives
}

// NewFake starts a server that answers with those turns, in order; the last one
// is repeated. It ends with the test.
func NewFake(t testing.TB, turns ...Turn) *Fake {
	f := &Fake{turns: turns, HTTP: NewClient(t)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]string{"version": "0.0.0-fake"}) })
	mux.HandleFunc("GET /api/tags", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, api.ListResponse{Models: []api.ListModelResponse{{Name: "fake:latest", Model: "fake:latest", Digest: "0123456789abcdef"}}})
	})
	mux.HandleFunc("POST /api/show", f.show)
	mux.HandleFunc("POST /api/chat", f.chat)
	mux.HandleFunc("POST /api/embed", f.embed)
	f.server = httptest.NewServer(mux)
	f.URL = f.server.URL
	t.Cleanup(func() { f.server.Close() })
	t.Cleanup(f.HTTP.CloseIdleConnections)
	return f
}

// Close stops the server before the test's end.
func (f *Fake) Close() { f.server.Close() }

// Restart ends the server and starts it anew at the same address.
func (f *Fake) Restart(t testing.TB) {
	t.Helper()
	address, handler := f.server.Listener.Addr().String(), f.server.Config.Handler
	f.server.Close()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	f.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	f.server.Start()
}

// Asked gives the chats that were asked for.
func (f *Fake) Asked() []api.ChatRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// Sent gives the bodies of those requests, as they came.
func (f *Fake) Sent() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// Embedded gives the texts of each request for embeddings.
func (f *Fake) Embedded() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.embeds
}

// Active is the number of chats that are being answered now.
func (f *Fake) Active() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

func (f *Fake) show(w http.ResponseWriter, r *http.Request) {
	var q api.ShowRequest
	_ = json.NewDecoder(r.Body).Decode(&q)
	if q.Model != "fake" {
		fail(w, http.StatusNotFound, "model '"+q.Model+"' not found")
		return
	}
	context, features := f.Context, f.Features
	if context == 0 {
		context = 8192
	}
	if features == nil {
		features = []string{"completion"}
	}
	reply(w, map[string]any{
		"details":    map[string]string{"parameter_size": "1", "quantization_level": "F32"},
		"model_info": map[string]any{"general.architecture": "fake", "fake.context_length": context, "fake.embedding_length": 3}, "capabilities": features,
	})
}

// next gives the turn for a chat.
func (f *Fake) next(q api.ChatRequest) Turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, q)
	t := f.turns[0]
	if len(f.turns) > 1 {
		f.turns = f.turns[1:]
	}
	return t
}

func (f *Fake) chat(w http.ResponseWriter, r *http.Request) {
	var q api.ChatRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	f.mu.Lock()
	f.active++
	f.sent = append(f.sent, string(body))
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.active--
		f.mu.Unlock()
	}()
	t := f.next(q)
	pause := func(d time.Duration) bool {
		select {
		case <-r.Context().Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	if !pause(t.Wait) {
		return
	}
	if t.Status != 0 && t.Status != http.StatusOK {
		fail(w, t.Status, t.Body)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	send := func(c api.ChatResponse) bool {
		if json.NewEncoder(w).Encode(c) != nil {
			return false
		}
		w.(http.Flusher).Flush()
		return r.Context().Err() == nil
	}
	for _, p := range t.Thinking {
		if !send(api.ChatResponse{Model: q.Model, Message: api.Message{Role: "assistant", Thinking: p}}) {
			return
		}
	}
	for again := true; again; again = t.Endless {
		for i, p := range t.Pieces {
			c := api.ChatResponse{Model: q.Model, Message: api.Message{Role: "assistant", Content: p}}
			if q.Logprobs && i < len(t.Logprobs) {
				c.Logprobs = []api.Logprob{{TokenLogprob: t.Logprobs[i][0], TopLogprobs: t.Logprobs[i]}}
			}
			if !send(c) || !pause(t.Between) {
				return
			}
		}
	}
	switch {
	case t.Body != "":
		_, _ = w.Write([]byte(t.Body))
	case t.Cut:
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler) // the connection ends here
	case len(t.Pieces) > 0 && !t.NoEnd:
		reason := t.Reason
		if reason == "" {
			reason = "stop"
		}
		end := api.ChatResponse{Model: q.Model, Message: api.Message{Role: "assistant"}, Done: true, DoneReason: reason}
		end.PromptEvalCount, end.EvalCount = 10, len(t.Pieces)
		send(end)
	}
}

func (f *Fake) embed(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Input []string `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	f.mu.Lock()
	f.embeds = append(f.embeds, q.Input)
	f.mu.Unlock()
	out := api.EmbedResponse{Model: "fake", Embeddings: [][]float32{}}
	for _, text := range q.Input {
		v := []float32{1, 0, 0}
		if f.Vector != nil {
			if v = f.Vector(text); v == nil {
				fail(w, http.StatusBadRequest, "the input length exceeds the context length")
				return
			}
		}
		out.Embeddings = append(out.Embeddings, v)
	}
	reply(w, out)
}
