package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/server"
)

// shelf is a retriever that finds all of its passages.
type shelf []retrieval.Passage

func (s shelf) Retrieve(context.Context, retrieval.Query) ([]retrieval.Passage, error) {
	return s, nil
}

var deposits = shelf{
	{ID: "city", Document: "rental.md", Title: "Deposit: City", Text: "The deposit is 200."},
	{ID: "cargo", Document: "rental.md", Title: "Deposit: Cargo", Text: "The deposit is 450."},
}

// asker asks at gate 2 which deposit is meant, unless the question says so.
type asker struct{}

func (asker) Clarify(_ context.Context, r gate.Request) (gate.Verdict, error) {
	q := strings.ToLower(r.Question)
	if r.Stage == gate.Pre || !strings.Contains(q, "deposit") || strings.Contains(q, "city") || strings.Contains(q, "cargo") {
		return gate.Verdict{Score: 0.1}, nil
	}
	v := gate.Verdict{Score: 0.8, Clarification: "City or Cargo?"}
	for i, p := range r.Passages {
		v.Options = append(v.Options, conversation.Option{ID: fmt.Sprint(i + 1), Text: strings.TrimPrefix(p.Title, "Deposit: "), Passages: []string{p.ID}})
	}
	return v, nil
}

// writer answers with its pieces, and waits before each until it is let.
type writer struct {
	pieces  []string
	let     chan struct{} // nil: does not wait
	err     error         // after the pieces
	fault   string        // to panic with
	runs    atomic.Int32
	running atomic.Int32
}

func (g *writer) Generate(ctx context.Context, r generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		g.runs.Add(1)
		g.running.Add(1)
		defer g.running.Add(-1)
		if g.fault != "" {
			panic(g.fault)
		}
		text := ""
		for _, p := range g.pieces {
			if g.let != nil {
				select {
				case <-g.let:
				case <-ctx.Done():
					yield(generation.Event{}, ctx.Err())
					return
				}
			}
			text += p
			if !yield(generation.Event{Delta: p}, nil) {
				return
			}
		}
		if g.err != nil {
			yield(generation.Event{}, g.err)
			return
		}
		p := r.Passages[0]
		yield(generation.Event{Done: &generation.Answer{Text: text, Found: true,
			Citations: []generation.Citation{{N: 1, Passage: p.ID, Title: p.Title, Quote: p.Text}}}}, nil)
	}
}

// bench is a server over fakes.
type bench struct {
	*httptest.Server
	t      *testing.T
	server *server.Server
	writer *writer
	store  conversation.Store
	log    *notes
}

// notes are what was logged.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// newBench starts a server. change may change its options and the HTTP server.
func newBench(t *testing.T, w *writer, store conversation.Store, change func(*server.Options, *http.Server)) *bench {
	t.Helper()
	b := &bench{t: t, writer: w, store: store, log: &notes{}}
	p, err := pipeline.New(pipeline.Parts{Retriever: deposits, Clarifier: asker{}, Generator: w, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Open: func(context.Context) (*server.Backend, error) { return &server.Backend{Pipeline: p, Store: store}, nil }}
	b.Server = httptest.NewUnstartedServer(nil)
	if change != nil {
		change(&o, b.Server.Config)
	}
	if b.server, err = server.New(o); err != nil {
		t.Fatal(err)
	}
	if b.Server.Config.Handler == nil {
		b.Server.Config.Handler = b.server.Handler()
	}
	b.Server.Start()
	t.Cleanup(b.stop)
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := b.server.Backend(); err == nil || time.Now().After(end) {
			return b
		}
	}
}

// stop stops the server, at once.
func (b *bench) stop() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.server.Close(now); err != nil {
		b.t.Error(err)
	}
	b.Server.CloseClientConnections()
	b.Server.Close()
}

// do sends a request; body may be nil, a string, or anything for JSON.
func (b *bench) do(ctx context.Context, method, path string, body any, header ...string) *http.Response {
	b.t.Helper()
	var content io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(v)
	default:
		j, err := json.Marshal(v)
		if err != nil {
			b.t.Fatal(err)
		}
		content = bytes.NewReader(j)
	}
	r, err := http.NewRequestWithContext(ctx, method, b.URL+path, content)
	if err != nil {
		b.t.Fatal(err)
	}
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := b.Client().Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// get sends a request, and reads the JSON that comes back.
func (b *bench) get(method, path string, body, into any, header ...string) *http.Response {
	b.t.Helper()
	resp := b.do(b.t.Context(), method, path, body, header...)
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			b.t.Fatalf("%s %s: %s: %q: %v", method, path, resp.Status, text, err)
		}
	}
	return resp
}

// event is a server-sent event as a client reads it.
type event struct {
	id   int
	name string
	data json.RawMessage
}

// events reads a stream as the HTML standard says, comments too.
func events(t *testing.T, r *http.Response) iter.Seq[event] {
	t.Helper()
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(r.Body)
		t.Fatalf("no stream but %s: %s", r.Status, text)
	}
	return func(yield func(event) bool) {
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 16<<20)
		var e event
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "id":
				e.id, _ = strconv.Atoi(value)
			case "event":
				e.name = value
			case "data":
				e.data = json.RawMessage(value)
			case "":
				if lines.Text() == ":" {
					e.name = "comment"
				} else if e.name == "" {
					continue
				}
				if !yield(e) {
					return
				}
				e = event{}
			default:
				t.Errorf("line %q", lines.Text())
			}
		}
	}
}

// told is a whole stream.
type told struct {
	names  string // of the events, in order, deltas in a row once
	text   string // the deltas, joined
	result *server.TurnResult
	wrong  *server.Problem
	ended  bool
	last   int // number of the last event
}

func (s *told) add(t *testing.T, e event) {
	t.Helper()
	if e.name == "comment" {
		return
	}
	if e.id <= s.last {
		t.Errorf("event %d after event %d", e.id, s.last)
	}
	s.last = e.id
	if !strings.HasSuffix(s.names, " "+e.name) {
		s.names += " " + e.name
	}
	var err error
	switch e.name {
	case "turn":
		s.text = ""
	case "delta":
		var d server.TurnDelta
		err = json.Unmarshal(e.data, &d)
		s.text += d.Text
	case "result":
		err = json.Unmarshal(e.data, &s.result)
	case "error":
		err = json.Unmarshal(e.data, &s.wrong)
	case "end":
		s.ended = true
	}
	if err != nil {
		t.Errorf("%s: %s: %v", e.name, e.data, err)
	}
}

// follow reads a stream to its end.
func follow(t *testing.T, r *http.Response) (s told) {
	t.Helper()
	for e := range events(t, r) {
		s.add(t, e)
	}
	return s
}

const asStream = "text/event-stream"

type message map[string]string
