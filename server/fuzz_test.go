package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/retrievertest"
	"github.com/askback/askback/server"
	"github.com/askback/askback/server/keys"
)

// recorder is a response with the control that a connection's has.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error  { return nil }
func (recorder) SetWriteDeadline(time.Time) error { return nil }

// house is a server without a port, with a document, a turn that was answered
// ("answered") and one that asks back ("asked") in conversation a. cache keeps the
// compiled reader of PDF files.
type house struct {
	http.Handler
	server *server.Server
}

func newHouse(t testing.TB, cache string) house {
	t.Helper()
	ctx := context.Background() // it may be used longer than t
	index, err := local.Open(ctx, local.Options{Embedder: new(retrievertest.Embedder)})
	if err != nil {
		t.Fatal(err)
	}
	one := func(yield func(retrieval.Document, error) bool) {
		yield(retrieval.Document{ID: "leave.md", Title: "Leave", Blocks: []retrieval.Block{{Text: "28 days."}}}, nil)
	}
	if _, err := retrieval.Sync(ctx, index, retrieval.Inputs(one, retrieval.ChunkOptions{}), retrieval.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	store := conversation.NewMemory()
	p, err := pipeline.New(pipeline.Parts{Retriever: deposits, Clarifier: asker{}, Generator: &writer{pieces: []string{"It is ", "200."}}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan struct{})
	s, err := server.New(server.Options{Log: slog.New(slog.DiscardHandler), Checks: []server.Check{{Name: "x", Run: func(context.Context) error { return nil }}},
		Open: func(context.Context) (*server.Backend, error) {
			defer close(opened)
			return &server.Backend{Pipeline: p, Store: store, Documents: &server.Documents{Library: index, Read: documents.Options{MaxFileSize: 1 << 20, CacheDir: cache}}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	<-opened
	h := house{s.Handler(), s}
	for h.ask(t, "GET", "/readyz", "", "", "").Code != http.StatusOK {
		time.Sleep(time.Millisecond) // the server takes what Open gave
	}
	for _, m := range []string{`{"text":"` + question + `","key":"answered"}`, `{"text":"What is the deposit?","key":"asked"}`} {
		if r := h.ask(t, "POST", turns, "", "", m); r.Code != http.StatusOK {
			t.Fatalf("%d %s", r.Code, r.Body)
		}
	}
	return h
}

func (h house) close(t testing.TB) {
	if err := h.server.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// ask sends a request and wants an answer of a known form: JSON, a stream that is
// whole, or a problem that is the client's.
func (h house) ask(t testing.TB, method, target, header, value, body string) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1"+target, strings.NewReader(body))
	if err != nil {
		t.Skip("no client can send it")
	}
	r.RemoteAddr = "127.0.0.1:1"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if header != "" {
		r.Header.Set(header, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(recorder{w}, r)
	if ctx.Err() != nil {
		t.Errorf("%s %s: no answer in a minute", method, target)
	}
	kind := w.Header().Get("Content-Type")
	switch {
	case w.Code >= 500:
		if target != "/readyz" {
			t.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
	case w.Code >= 400:
		var p server.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || kind != "application/problem+json" || p.Status != w.Code || p.Title == "" || p.Detail == "" {
			t.Errorf("%s %s: %d, %s: %s", method, target, w.Code, kind, w.Body)
		}
	case w.Code >= 300:
		if w.Header().Get("Location") == "" {
			t.Errorf("%s %s: %d to nowhere", method, target, w.Code)
		}
	case kind == "text/event-stream":
		if !strings.HasSuffix(w.Body.String(), "event: end\ndata: {}\n\n") {
			t.Errorf("%s %s: a stream without an end: %q", method, target, w.Body)
		}
	case w.Code == http.StatusNoContent:
	default:
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: %d, no JSON: %q", method, target, w.Code, w.Body)
		}
	}
	return w
}

// operations are those of the API's description, in order.
func (h house) operations(t testing.TB) (all [][2]string) {
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(h.ask(t, "GET", "/openapi.json", "", "", "").Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	for path, methods := range d.Paths {
		for method := range methods {
			all = append(all, [2]string{strings.ToUpper(method), path})
		}
	}
	slices.SortFunc(all, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return all
}

// target is a path with its parameters filled in.
func target(path, query string, parameters ...string) string {
	for _, p := range parameters {
		from, to := strings.IndexByte(path, '{'), strings.IndexByte(path, '}')
		if from < 0 {
			break
		}
		path = path[:from] + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(url.PathEscape(p)) + path[to+1:]
	}
	if query != "" {
		path += "?" + query
	}
	return path
}

// FuzzRequest sends anything to every operation: whatever that is, the answer is of a
// known form and never says that the server failed, and the server goes on.
func FuzzRequest(f *testing.F) {
	cache := f.TempDir()
	h := newHouse(f, cache)
	f.Cleanup(func() { h.close(f) })
	all := h.operations(f)
	if len(all) < 12 {
		f.Fatalf("only %d operations: %v", len(all), all)
	}
	form := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.md\"\r\n\r\n# A\n\ntext\r\n--b--\r\n"
	bodies := []string{"", `{"text":"x","key":"k"}`, `{"choice":"2","clarification":"c1"}`, `{"title":"t"}`, `{"pre_threshold":0,"post_threshold":2}`, "# A\n\ntext", `{"text":"x","text":null,`}
	for i := range all {
		f.Add(byte(i), "a", "asked", "", "Accept", asStream, bodies[i%len(bodies)])
		f.Add(byte(i), "a", "answered", "", "Last-Event-ID", "2", bodies[(i+1)%len(bodies)])
		f.Add(byte(i), "leave.md", "..", "limit=2&cursor=MSBh", "Content-Type", "multipart/form-data; boundary=b", form)
		f.Add(byte(i), "%2e/\xff\x00", "", "limit=-1&x=%zz;", "Origin", "null", `[]`)
		f.Add(byte(i), "a.csv", "1", "cursor=%00", "Content-Type", "text/csv", "a,b\n1,\"2\n")
	}
	f.Fuzz(func(t *testing.T, operation byte, first, second, query, header, value, body string) {
		if header != "" && (!httpguts.ValidHeaderFieldName(header) || !httpguts.ValidHeaderFieldValue(value)) {
			t.Skip("net/http refuses it")
		}
		o := all[int(operation)%len(all)]
		r := h.ask(t, o[0], target(o[1], query, first, second), header, value, body)
		for _, path := range []string{"/api/conversations", "/api/documents"} {
			if r := h.ask(t, "GET", path, "", "", ""); r.Code != http.StatusOK {
				t.Errorf("%v: %s afterwards: %d %s", o, path, r.Code, r.Body)
			}
		}
		if r := h.ask(t, "GET", "/api/conversations/a", "", "", ""); r.Code != http.StatusOK && o[0] != "DELETE" {
			t.Errorf("%v: the conversation afterwards: %d %s", o, r.Code, r.Body)
		}
		if o[0] != "GET" && r.Code < 400 || t.Failed() { // it is another than it was
			h.close(t)
			h = newHouse(t, cache)
		}
	})
}

// FuzzLastEventID resumes a stream at anything: it goes on after what the client has,
// and without it is told from the beginning.
func FuzzLastEventID(f *testing.F) {
	for _, seed := range []string{"", "0", "1", "3", "-1", "999999999999999999999", "2147483647", "2147483648", "1.5", " 2", "0x1", "1,2", "\u0663", "1e1", "null"} {
		f.Add(seed)
	}
	h := newHouse(f, "")
	f.Cleanup(func() { h.close(f) })
	f.Fuzz(func(t *testing.T, last string) {
		if !httpguts.ValidHeaderFieldValue(last) {
			t.Skip("net/http refuses it")
		}
		events := func(last string) string {
			r := h.ask(t, "GET", turns+"/answered/events", "Last-Event-ID", last, "")
			if r.Code != http.StatusOK {
				return fmt.Sprint(r.Code)
			}
			return strings.ReplaceAll(r.Body.String(), ":\n\n", "")
		}
		whole, rest := events(""), events(last)
		switch rest {
		case "204", "422", "400", whole:
			return
		}
		n, err := strconv.Atoi(last)
		if next := fmt.Sprintf("id: %d\n", n+1); err != nil || !strings.HasPrefix(rest, next) || !strings.HasSuffix(whole, rest) {
			t.Errorf("after %q: %q, of %q", last, rest, whole)
		}
	})
}

// FuzzAuthorization comes with anything in place of a key: nobody is let in but who
// has a whole one, and every other is told so.
func FuzzAuthorization(f *testing.F) {
	file := keys.File{Path: filepath.Join(f.TempDir(), "keys.json")}
	key, secret, err := file.Create(keys.New{Name: "Ada", Tenant: "larkwheel"})
	if err != nil {
		f.Fatal(err)
	}
	ring, err := keys.Open(file.Path, nil)
	if err != nil {
		f.Fatal(err)
	}
	whole := secret.Reveal()
	for _, seed := range []string{"", "Bearer", "Bearer ", "Bearer KEY", "bearer  KEY ", "Basic KEY", "KEY", "Bearer KEYa", "Bearer KEY,KEY", "Bearer " + key.ID, "Bearer " + key.Hash, "Bearer \xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		value = strings.ReplaceAll(value, "KEY", whole)
		if !httpguts.ValidHeaderFieldValue(value) {
			t.Skip("net/http refuses it")
		}
		s, err := server.New(server.Options{Log: slog.New(slog.DiscardHandler), Keys: ring,
			Open: func(context.Context) (*server.Backend, error) { return nil, errors.New("not yet") }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		s.Handle("/kept", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", server.User(r.Context())) }))
		r := house{s.Handler(), s}.ask(t, "GET", "/kept", "Authorization", value, "")
		scheme, rest, _ := strings.Cut(value, " ")
		has := strings.EqualFold(scheme, "bearer") && strings.TrimSpace(rest) == whole
		if want := map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized}[has]; r.Code != want || has && r.Body.String() != `"larkwheel"` {
			t.Errorf("%q: %d %s", value, r.Code, r.Body)
		}
	})
}
