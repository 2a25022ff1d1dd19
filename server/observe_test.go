package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server"
	"github.com/askback/askback/server/keys"
	"github.com/askback/askback/server/tenant"
)

// measured gives what was measured, without zeros: "name value value" of each point.
func measured(t *testing.T, reader metric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					if p.Value != 0 {
						got[point(m.Name, p.Attributes.ToSlice())] = p.Value
					}
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					got[point(m.Name, p.Attributes.ToSlice())] = int64(p.Count)
				}
			}
		}
	}
	return got
}

func point(name string, attributes []attribute.KeyValue) string {
	for _, a := range attributes { // in the order of their names
		name += " " + a.Value.AsString()
	}
	return name
}

// TestMeasures sends requests to many paths, with many methods: what they are counted
// by stays few.
func TestMeasures(t *testing.T) {
	reader := metric.NewManualReader()
	w := &writer{pieces: []string{"200"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), func(o *server.Options, _ *http.Server) {
		o.Meter = metric.NewMeterProvider(metric.WithReader(reader))
		o.Hosts = []string{"127.0.0.1"}
	})
	b.server.Handle("/v1/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	b.server.Handle("GET /late", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	b.server.Handle("POST /panics", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }))

	running := b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "Accept", asStream)
	eventually(t, "the turn runs", func() bool { return w.running.Load() == 1 })
	const started = "/api/conversations/{conversation}/turns"
	if got, want := measured(t, reader), map[string]int64{"askback.http.active " + started: 1, "askback.turns.active": 1}; !maps.Equal(got, want) {
		t.Errorf("while a turn runs: %v, want %v", got, want)
	}
	close(w.let)
	follow(t, running)

	for i := range 40 {
		for _, path := range []string{"/api/x%d", "/x%d", "/api/conversations/c%d", "/v1/x%d", "/api/conversations/c%d/turns/%[1]d/events"} {
			b.get("GET", fmt.Sprintf(path, i), nil, nil)
		}
		b.get(fmt.Sprintf("M%d", i), "/api/about", nil, nil)
	}
	b.get("GET", "/api/about", nil, nil)
	b.get("GET", "/api/about", nil, nil, "Host", "evil.example")
	b.get("POST", turns, "{}", nil, "Sec-Fetch-Site", "cross-site")
	if r, err := b.Client().Post(b.URL+"/panics", "text/plain", nil); err == nil {
		r.Body.Close()
		t.Error("there is a response to a panic")
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		r, _ := http.NewRequestWithContext(ctx, "GET", b.URL+"/late", nil)
		if r, err := b.Client().Do(r); err == nil {
			r.Body.Close()
		}
	}()
	eventually(t, "it waits", func() bool { return measured(t, reader)["askback.http.active /late"] == 1 })
	leave()
	<-left
	want := map[string]int64{
		"askback.http.duration 2xx POST " + started:                                           1,
		"askback.http.duration 4xx POST " + started:                                           1,
		"askback.http.duration 4xx GET /api/conversations/{conversation}":                     40,
		"askback.http.duration 4xx GET /api/conversations/{conversation}/turns/{turn}/events": 40,
		"askback.http.duration 4xx GET /v1/":                                                  40,
		"askback.http.duration 4xx GET other":                                                 80,
		"askback.http.duration 4xx other other":                                               40,
		"askback.http.duration 2xx GET /api/about":                                            1,
		"askback.http.duration 4xx GET /api/about":                                            1,
		"askback.http.duration 5xx POST /panics":                                              1,
		"askback.http.duration 4xx GET /late":                                                 1,
	}
	var got map[string]int64
	eventually(t, "all have ended", func() bool {
		got = measured(t, reader)
		return !slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(k string) bool { return strings.Contains(k, "active") })
	})
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestMeasuresErrors counts what fails by the service that it fails for, once.
func TestMeasuresErrors(t *testing.T) {
	reader := metric.NewManualReader()
	gone := errors.New("connection reset by peer")
	w := &writer{err: gone}
	b := newBench(t, w, conversation.NewMemory(), func(o *server.Options, _ *http.Server) {
		o.Meter = metric.NewMeterProvider(metric.WithReader(reader))
		o.Blame = func(err error) string {
			if errors.Is(err, gone) {
				return "Ollama"
			}
			return ""
		}
	})
	for _, accept := range []string{"application/json", asStream} {
		b.get("POST", turns, message{"text": question}, nil, "Accept", accept)
	}
	w.err = errors.New("a mistake")
	b.get("POST", turns, message{"text": question}, nil)
	b.get("POST", turns, message{"text": ""}, nil) // the user's
	if service := b.server.Blame(gone); service != "Ollama" {
		t.Errorf("blamed %q", service)
	}
	got := measured(t, reader)
	maps.DeleteFunc(got, func(k string, _ int64) bool { return !strings.HasPrefix(k, "askback.errors") })
	if want := map[string]int64{"askback.errors Ollama": 3, "askback.errors askback": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMeasuresUploads(t *testing.T) {
	reader := metric.NewManualReader()
	whole, err := openLibrary(t, server.Documents{}).server.Backend()
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, &writer{}, conversation.NewMemory(), func(o *server.Options, _ *http.Server) {
		o.Meter = metric.NewMeterProvider(metric.WithReader(reader))
		o.Open = func(context.Context) (*server.Backend, error) { return whole, nil }
	})
	b.get("PUT", "/api/documents/a.md", "# A\n\ntext", nil)
	b.get("PUT", "/api/documents/b.md", "# B\n\ntext", nil, "Accept", asStream)
	b.get("PUT", "/api/documents/c.xyz", "\x00\x01", nil)
	got := measured(t, reader)
	maps.DeleteFunc(got, func(k string, _ int64) bool { return !strings.HasPrefix(k, "askback.uploads") })
	if want := map[string]int64{"askback.uploads stored": 2, "askback.uploads failed": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRequestsAreLogged looks at the line of each request, which has nothing of what
// was asked or of whom it is about.
func TestRequestsAreLogged(t *testing.T) {
	file := keys.File{Path: filepath.Join(t.TempDir(), "keys.json")}
	_, secret, err := file.Create(keys.New{Name: "Ada", Tenant: "larkwheel"})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Open(file.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, &writer{pieces: []string{"200"}}, tenant.Conversations(conversation.NewMemory()), func(o *server.Options, _ *http.Server) { o.Keys = ring })
	b.server.Handle("/id", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", server.RequestID(r.Context())) }))
	key := []string{"Authorization", "Bearer " + secret.Reveal()}
	for _, c := range []struct {
		name, method, path string
		body               any
		header             []string
		id                 string // "" for one of the server's own
		want               []string
	}{
		{"a turn", "POST", turns, message{"text": question}, append(key, "X-Request-Id", "r-1"), "r-1", []string{"level=INFO", "msg=request", "request=r-1", "method=POST", "route=/api/conversations/{conversation}/turns", "status=200", "elapsed=", "tenant=larkwheel"}},
		{"nothing there", "GET", "/api/secret-path?a=secret", nil, key, "", []string{"level=INFO", "route=other", "status=404", "tenant=larkwheel"}},
		{"without a key", "GET", "/api/about", nil, nil, "", []string{"level=INFO", "route=/api/about", "status=401"}},
		{"an id that would forge a line", "GET", "/id", nil, append(key, "X-Request-Id", "a level=ERROR"), "", []string{"route=/id", "status=200"}},
		{"asked for again and again", "GET", "/healthz", nil, nil, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(b.log.String())
			var text any
			r := b.get(c.method, c.path, c.body, &text, c.header...)
			id := r.Header.Get("X-Request-Id")
			if id == "" || c.id != "" && id != c.id || strings.Contains(id, " ") {
				t.Errorf("the id is %q", id)
			}
			if inside, ok := text.(string); ok && inside != id {
				t.Errorf("the id is %q inside, %q outside", inside, id)
			}
			line := ""
			if c.want != nil {
				eventually(t, "a line", func() bool { line = b.log.String()[before:]; return strings.Contains(line, id) })
			}
			for _, want := range c.want {
				if !strings.Contains(line, want) {
					t.Errorf("no %s in %s", want, line)
				}
			}
			if c.want == nil && strings.Contains(b.log.String()[before:], "msg=request") || strings.Count(line, "msg=request") > 1 {
				t.Errorf("logged: %s", b.log.String()[before:])
			}
			for _, secret := range []string{"secret", "deposit", secret.Reveal(), "Ada"} {
				if strings.Contains(line, secret) {
					t.Errorf("the log holds %q: %s", secret, line)
				}
			}
		})
	}
}

// TestAnyWriter passes on what the server's own writer can do.
func TestAnyWriter(t *testing.T) {
	b := newBench(t, &writer{}, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.Log = slog.New(slog.DiscardHandler) })
	b.server.Handle("/flushes", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Flushed", "yes")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	if r := b.do(ctx, "GET", "/flushes", nil); r.Header.Get("X-Flushed") != "yes" {
		t.Errorf("%s %v", r.Status, r.Header)
	}
}
