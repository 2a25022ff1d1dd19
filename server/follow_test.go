package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	turns    = "/api/conversations/a/turns"
	question = "What is the City deposit?"
)

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after a minute: %s", what)
		}
	}
}

// stored gives the conversation's turns as they are kept.
func (b *bench) stored() []conversation.Turn {
	b.t.Helper()
	c, err := b.store.Load(b.t.Context(), "a", conversation.All)
	if errors.Is(err, conversation.ErrNotFound) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return c.Turns
}

// begin starts a turn and reads it until the first piece of its answer.
func (b *bench) begin(ctx context.Context, key string) (s told, r *http.Response) {
	b.t.Helper()
	go func() { b.writer.let <- struct{}{} }()
	r = b.do(ctx, "POST", turns, message{"text": question, "key": key}, "Accept", asStream)
	for e := range events(b.t, r) {
		if s.add(b.t, e); e.name == "delta" {
			break
		}
	}
	return s, r
}

// A reader that was cut off in the middle of a turn comes back and gets the rest,
// and no piece twice; one that comes after the end gets all of it.
func TestComeBack(t *testing.T) {
	w := &writer{pieces: []string{"The ", "deposit ", "is ", "200."}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	ctx, leave := context.WithCancel(t.Context())
	s, _ := b.begin(ctx, "k")
	leave()
	if s.text != "The " {
		t.Fatalf("before it left %q", s.text)
	}
	w.let <- struct{}{} // nobody reads
	last := fmt.Sprint(s.last)
	r := b.do(t.Context(), "GET", turns+"/k/events", nil, "Last-Event-ID", last)
	go func() { w.let <- struct{}{}; w.let <- struct{}{} }()
	for e := range events(t, r) {
		s.add(t, e)
	}
	if s.text != "The deposit is 200." || !s.ended || s.result == nil || s.result.Text != s.text {
		t.Errorf("in two parts: %+v", s)
	}
	if whole := follow(t, b.do(t.Context(), "GET", turns+"/k/events", nil)); whole.text != s.text || whole.last != s.last || whole.result.Turn != 1 {
		t.Errorf("after the end: %+v, want as %+v", whole, s)
	}
	for after, want := range map[string]int{last: 200, fmt.Sprint(s.last): 204, "999": 200} {
		if r := b.do(t.Context(), "GET", turns+"/k/events", nil, "Last-Event-ID", after); r.StatusCode != want {
			t.Errorf("after event %s: %s", after, r.Status)
		}
	}
	if n := w.runs.Load(); n != 1 || len(b.stored()) != 1 {
		t.Errorf("%d runs, %d turns", n, len(b.stored()))
	}
}

// After a restart, and when memory has let go of it, a turn is given from the store.
func TestComeBackToAnotherServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.db")
	open := func() conversation.Store {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	store := open()
	b := newBench(t, &writer{pieces: []string{"200 €", ".\n"}}, store, nil)
	first := follow(t, b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "Accept", asStream))
	asked := follow(t, b.do(t.Context(), "POST", turns, message{"text": "What is the deposit?", "key": "k2"}, "Accept", asStream))
	if first.text != "200 €.\n" || asked.result.Kind != conversation.KindClarification {
		t.Fatalf("%+v, %+v", first, asked)
	}
	b.stop()
	store.Close()

	w := &writer{}
	b = newBench(t, w, open(), nil)
	again := follow(t, b.do(t.Context(), "GET", turns+"/k/events", nil))
	if again.names != " turn understood retrieved decided delta result end" || again.text != first.text || again.result.Text != first.text || again.result.ID != "k" {
		t.Errorf("events%s, %+v", again.names, again)
	}
	rest := follow(t, b.do(t.Context(), "GET", turns+"/k/events", nil, "Last-Event-ID", "4"))
	if rest.names != " result end" || rest.last != 6 || rest.result.Text != first.text {
		t.Errorf("the rest: events%s to %d, %+v", rest.names, rest.last, rest.result)
	}
	// What the client says it has costs nothing, be it more than there can be.
	if s := follow(t, b.do(t.Context(), "GET", turns+"/k/events", nil, "Last-Event-ID", "2147483647")); s.names != " result end" || s.result.Text != first.text {
		t.Errorf("after an event that there cannot be: events%s, %+v", s.names, s.result)
	}
	for _, after := range []string{"2147483648", "1000000000000", "9223372036854775807", "-1", "x"} {
		var p server.Problem
		if r := b.get("GET", turns+"/none/events", nil, &p, "Last-Event-ID", after); r.StatusCode != 422 || p.Code != "invalid" {
			t.Errorf("after event %s: %s, %+v", after, r.Status, p)
		}
	}
	if s := follow(t, b.do(t.Context(), "GET", turns+"/k2/events", nil)); s.names != " turn understood retrieved decided result end" || s.result.Clarification != "c2" || s.text != "" {
		t.Errorf("events%s, %+v", s.names, s.result)
	}
	var r server.TurnResult
	if b.get("POST", turns, message{"text": question, "key": "k"}, &r); r.Turn != 1 || r.Text != first.text || w.runs.Load() != 0 {
		t.Errorf("sent again: %+v, %d runs", r, w.runs.Load())
	}
	var p server.Problem
	if r := b.get("GET", turns+"/none/events", nil, &p); r.StatusCode != 404 || p.Code != "not_found" {
		t.Errorf("%s %+v", r.Status, p)
	}
}

// A message sent twice at the same moment is one turn; another message with its
// key is refused.
func TestSentTwice(t *testing.T) {
	w := &writer{pieces: []string{"200"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	var all sync.WaitGroup
	results := make([]server.TurnResult, 6)
	for i := range results {
		all.Go(func() {
			if i%2 == 0 {
				results[i] = *follow(t, b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "Accept", asStream)).result
			} else {
				b.get("POST", turns, message{"text": question, "key": "k"}, &results[i])
			}
		})
	}
	w.let <- struct{}{}
	all.Wait()
	for i, r := range results {
		if r.ID != "k" || r.Turn != 1 || r.Text != "200" {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if n := w.runs.Load(); n != 1 || len(b.stored()) != 1 {
		t.Errorf("%d runs, %d turns", n, len(b.stored()))
	}
	var p server.Problem
	if r := b.get("POST", turns, message{"text": "Another?", "key": "k"}, &p); r.StatusCode != 409 || p.Code != "key" {
		t.Errorf("%s %+v", r.Status, p)
	}
}

// Of two turns of a conversation the second waits for the first, and says so; its
// own number is the next.
func TestTwoTurnsAtOnce(t *testing.T) {
	w := &writer{pieces: []string{"200"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	var all sync.WaitGroup
	said := make([]told, 2)
	for i := range said {
		all.Go(func() {
			said[i] = follow(t, b.do(t.Context(), "POST", turns, message{"text": question, "key": fmt.Sprint(i)}, "Accept", asStream))
		})
	}
	time.Sleep(1200 * time.Millisecond) // longer than a turn waits without a word
	w.let <- struct{}{}
	w.let <- struct{}{}
	all.Wait()
	waited := strings.Count(said[0].names+said[1].names, "waiting")
	if waited != 1 || said[0].result.Turn+said[1].result.Turn != 3 || len(b.stored()) != 2 {
		t.Errorf("%d waited, turns %d and %d, %d stored", waited, said[0].result.Turn, said[1].result.Turn, len(b.stored()))
	}
}

// DELETE stops the model within a second, and its readers are told. What was shown
// is kept, and the message can be sent again.
func TestStop(t *testing.T) {
	w := &writer{pieces: []string{"The ", "deposit"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	s, r := b.begin(t.Context(), "k")
	start := time.Now()
	if stop := b.do(t.Context(), "DELETE", turns+"/k", nil); stop.StatusCode != 204 {
		t.Errorf("stopping: %s", stop.Status)
	}
	if took := time.Since(start); took > time.Second || w.running.Load() != 0 {
		t.Errorf("stopped after %v, %d generators run", took, w.running.Load())
	}
	for e := range events(t, r) {
		s.add(t, e)
	}
	if !s.ended || s.wrong == nil || s.wrong.Code != "stopped" || s.result != nil {
		t.Errorf("%+v", s)
	}
	kept := b.stored()
	if len(kept) != 1 || kept[0].Kind != conversation.KindPartial || kept[0].Reply != "The " || kept[0].Key != "k" {
		t.Errorf("kept %+v", kept)
	}
	if r := b.do(t.Context(), "DELETE", turns+"/k", nil); r.StatusCode != 204 {
		t.Errorf("stopping again: %s", r.Status)
	}
	if r := b.do(t.Context(), "DELETE", turns+"/none", nil); r.StatusCode != 404 {
		t.Errorf("stopping nothing: %s", r.Status)
	}
	go func() { w.let <- struct{}{}; w.let <- struct{}{} }()
	if again := follow(t, b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "Accept", asStream)); again.text != "The deposit" || again.result.Turn != 2 {
		t.Errorf("sent again: %+v", again)
	}
	if r := b.do(t.Context(), "DELETE", turns+"/k", nil); r.StatusCode != 204 || b.stored()[1].Kind != conversation.KindAnswer {
		t.Errorf("stopping what has ended: %s", r.Status)
	}
}

// Stopped again and again, nothing is left of the turns.
func TestStopOften(t *testing.T) {
	w := &writer{pieces: []string{"The ", "deposit"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	var before int
	for i := range 50 {
		key := fmt.Sprint(i)
		_, r := b.begin(t.Context(), key)
		if stop := b.do(t.Context(), "DELETE", turns+"/"+key, nil); stop.StatusCode != 204 {
			t.Fatalf("stopping: %s", stop.Status)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if n := w.running.Load(); n != 0 {
			t.Fatalf("%d generators run after stop %d", n, i+1)
		}
		if i == 4 {
			before = runtime.NumGoroutine()
		}
	}
	eventually(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before+2 })
	if n := len(b.stored()); n != 50 {
		t.Errorf("%d turns are stored", n)
	}
}

// A client that leaves does not stop its turn, whether it read a stream or waited.
func TestLeave(t *testing.T) {
	w := &writer{pieces: []string{"The ", "deposit"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	ctx, leave := context.WithCancel(t.Context())
	b.begin(ctx, "k")
	leave()
	w.let <- struct{}{}
	eventually(t, "the turn is stored", func() bool { return len(b.stored()) == 1 })

	r, err := http.NewRequestWithContext(t.Context(), "POST", b.URL+turns, strings.NewReader(`{"text":"`+question+`","key":"k2"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave = context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := b.Client().Do(r.WithContext(ctx))
		gone <- err
	}()
	w.let <- struct{}{}
	leave()
	if err := <-gone; err == nil {
		t.Error("it did not leave")
	}
	w.let <- struct{}{}
	eventually(t, "the second turn is stored", func() bool { return len(b.stored()) == 2 })
	for _, kept := range b.stored() {
		if kept.Kind != conversation.KindAnswer || kept.Reply != "The deposit" {
			t.Errorf("%+v", kept)
		}
	}
}

// Heartbeats come from the start, while nothing else does.
func TestHeartbeat(t *testing.T) {
	w := &writer{pieces: []string{"200"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.Heartbeat = 20 * time.Millisecond })
	beats := 0
	var s told
	for e := range events(t, b.do(t.Context(), "POST", turns, message{"text": question}, "Accept", asStream)) {
		if s.add(t, e); e.name == "comment" && s.text == "" {
			if beats == 0 && s.names != "" {
				t.Errorf("before the first comment:%s", s.names)
			}
			if beats++; beats == 5 {
				w.let <- struct{}{}
			}
		}
	}
	if beats < 5 || s.text != "200" || !s.ended {
		t.Errorf("%d beats, %+v", beats, s)
	}
}

// The server's time limits do not cut a live answer, streamed or waited for.
func TestServersTimeLimits(t *testing.T) {
	w := &writer{pieces: []string{"The ", "deposit ", "is ", "200."}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), func(_ *server.Options, h *http.Server) {
		h.WriteTimeout, h.ReadTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	slowly := func() {
		for range w.pieces {
			time.Sleep(100 * time.Millisecond)
			w.let <- struct{}{}
		}
	}
	go slowly()
	if s := follow(t, b.do(t.Context(), "POST", turns, message{"text": question}, "Accept", asStream)); s.text != "The deposit is 200." || !s.ended {
		t.Errorf("%+v", s)
	}
	go slowly()
	var r server.TurnResult
	if b.get("POST", turns, message{"text": question, "key": "k"}, &r); r.Text != "The deposit is 200." {
		t.Errorf("%+v", r)
	}
	go slowly() // a preview takes its time within the request
	var preview pipeline.Record
	resp := b.do(t.Context(), "POST", turns+"/k/preview", "{}")
	if err := json.NewDecoder(resp.Body).Decode(&preview); err != nil || preview.Text != "The deposit is 200." {
		t.Errorf("%s, %v, %+v", resp.Status, err, preview)
	}
}

// A writer that cannot lift the limits, as of a middleware that hides it, is told at
// once instead of cutting answers.
func TestHiddenWriter(t *testing.T) {
	b := newBench(t, &writer{pieces: []string{"200"}}, conversation.NewMemory(), nil)
	inner := b.server.Handler()
	b.Server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})
	for _, accept := range []string{asStream, "application/json"} {
		var p server.Problem
		if r := b.get("POST", turns, message{"text": question}, &p, "Accept", accept); r.StatusCode != 500 || !strings.Contains(p.Detail, "Unwrap") {
			t.Errorf("%s: %s %+v", accept, r.Status, p)
		}
	}
	if !strings.Contains(b.log.String(), "Unwrap") {
		t.Errorf("log: %s", b.log)
	}
}

// A reader that takes nothing does not hold the turn up, and gets everything once it
// reads.
func TestSlowReader(t *testing.T) {
	piece := strings.Repeat("word ", 100_000)
	w := &writer{pieces: []string{piece, piece, piece, piece, piece, piece, piece, piece}}
	b := newBench(t, w, conversation.NewMemory(), nil)
	slow := b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "Accept", asStream)
	eventually(t, "the turn ends", func() bool { return len(b.stored()) == 1 })
	text, err := io.ReadAll(slow.Body)
	if err != nil || strings.Count(string(text), "event: delta") != len(w.pieces) || !strings.HasSuffix(string(text), "event: end\ndata: {}\n\n") {
		t.Errorf("read %d bytes, %v", len(text), err)
	}
}

// A reader that takes nothing for too long is given up, not its turn.
func TestPatience(t *testing.T) {
	server.SetPatience(50 * time.Millisecond)
	defer server.SetPatience(time.Minute)
	piece := strings.Repeat("word ", 20_000)
	w := &writer{pieces: []string{piece, piece, piece, piece, piece, piece, piece, piece}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), func(_ *server.Options, h *http.Server) {
		h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10) // so that what is not read is soon felt
			return ctx
		}
	})
	b.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(16 << 10)
		}
		return c, err
	}
	slow := b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "Accept", asStream)
	for range w.pieces {
		w.let <- struct{}{}
	}
	eventually(t, "the turn ends", func() bool { return len(b.stored()) == 1 })
	time.Sleep(200 * time.Millisecond)
	if text, err := io.ReadAll(slow.Body); err == nil || strings.Contains(string(text), "event: end") {
		t.Errorf("read %d bytes to the end, %v", len(text), err)
	}
	server.SetPatience(time.Minute)
	if s := follow(t, b.do(t.Context(), "GET", turns+"/k/events", nil)); s.text != strings.Repeat(piece, len(w.pieces)) || !s.ended {
		t.Errorf("%d bytes of %d, ended %v", len(s.text), len(piece)*len(w.pieces), s.ended)
	}
}

// pipes are connections that hold nothing: what is written waits until it is read.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// readers gives what begins the turn "k" as a stream over a connection of its own, and
// reads nothing of it.
func (b *bench) readers() func() net.Conn {
	p := make(pipes)
	served := &http.Server{Handler: b.server.Handler()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = served.Serve(p)
	}()
	b.t.Cleanup(func() {
		close(p)
		served.Close()
		<-done
	})
	return func() net.Conn {
		b.t.Helper()
		c, far := net.Pipe()
		p <- far
		b.t.Cleanup(func() { c.Close() })
		body := fmt.Sprintf(`{"text": %q, "key": "k"}`, question)
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: %s\r\nContent-Length: %d\r\n\r\n%s", turns, asStream, len(body), body); err != nil {
			b.t.Fatal(err)
		}
		return c
	}
}

// A reader who takes an answer byte by byte, for longer than one who takes nothing is
// waited for, gets it to its end.
func TestByteByByte(t *testing.T) {
	server.SetPatience(time.Second)
	defer server.SetPatience(time.Minute)
	w := &writer{pieces: []string{strings.Repeat("word ", 20_000), strings.Repeat("more ", 20_000)}}
	b := newBench(t, w, conversation.NewMemory(), nil)
	slow := b.readers()()
	eventually(t, "the turn ends", func() bool { return len(b.stored()) == 1 })
	one := make([]byte, 1)
	var got strings.Builder
	start := time.Now()
	for !strings.HasSuffix(got.String(), "event: end\ndata: {}\n\n\r\n") { // of the last chunk
		if _, err := slow.Read(one); err != nil {
			t.Fatalf("after %d bytes and %v: %v", got.Len(), time.Since(start), err)
		}
		got.Write(one)
		if got.Len()%128 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if took := time.Since(start); took < 2*time.Second {
		t.Errorf("it took %v, which proves nothing", took)
	}
	if n := strings.Count(got.String(), "event: delta"); n != 2 || got.Len() < 2*2*100_000 {
		t.Errorf("%d bytes, %d deltas", got.Len(), n)
	}
}

// Readers who stop reading cost little memory, hold neither their turn nor another up, and
// are given up in the end.
func TestDeafReaders(t *testing.T) {
	server.SetPatience(3 * time.Second)
	defer server.SetPatience(time.Minute)
	w := &writer{pieces: []string{strings.Repeat("word ", 1<<20), strings.Repeat("more ", 1<<20)}} // 10 MiB
	b := newBench(t, w, conversation.NewMemory(), nil)
	reader := b.readers()
	first := reader()
	eventually(t, "the turn ends", func() bool { return len(b.stored()) == 1 })
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	const readers = 100
	begun := make([]byte, 4<<10)
	for range readers {
		if _, err := io.ReadFull(reader(), begun); err != nil { // of the same turn
			t.Fatal(err)
		}
	}
	eventually(t, "all are served", func() bool { return runtime.NumGoroutine() >= goroutines+readers })
	time.Sleep(200 * time.Millisecond)
	if each := (heap() - before) / readers; each > 256<<10 {
		t.Errorf("each reader holds %d KiB", each>>10)
	}
	w.pieces = []string{"200"}
	start := time.Now()
	var r server.TurnResult
	if b.get("POST", "/api/conversations/other/turns", message{"text": question}, &r); r.Text != "200" || time.Since(start) > 2*time.Second {
		t.Errorf("another turn: %q after %v", r.Text, time.Since(start))
	}
	eventually(t, "they are given up", func() bool { return runtime.NumGoroutine() < goroutines+readers/2 })
	if text, err := io.ReadAll(first); err != nil || strings.Contains(string(text), "event: end") {
		t.Errorf("the first has %d bytes to the end, %v", len(text), err)
	}
	if text, err := io.ReadAll(b.do(t.Context(), "GET", turns+"/k/events", nil).Body); err != nil || len(text) < 10<<20 || !strings.HasSuffix(string(text), "event: end\ndata: {}\n\n") {
		t.Errorf("who reads has %d bytes, %v", len(text), err)
	}
}

// What goes wrong in a turn ends its stream with a problem; the message can be sent
// again with its key.
func TestGoesWrong(t *testing.T) {
	w := &writer{pieces: []string{"The "}, err: errors.New("the model is gone")}
	down := true
	b := newBench(t, w, conversation.NewMemory(), func(o *server.Options, _ *http.Server) {
		o.Checks = []server.Check{
			{Name: "Qdrant", Run: func(context.Context) error { return nil }},
			{Name: "Ollama", Run: func(context.Context) error {
				if down {
					return errors.New("connection refused")
				}
				return nil
			}},
		}
	})
	s := follow(t, b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "Accept", asStream))
	if !s.ended || s.wrong == nil || s.wrong.Status != 503 || s.wrong.Service != "Ollama" || s.wrong.Code != "unavailable" {
		t.Errorf("%+v", s.wrong)
	}
	var p server.Problem
	if r := b.get("POST", turns, message{"text": question, "key": "k"}, &p); r.StatusCode != 503 || p.Service != "Ollama" || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s %+v", r.Status, p)
	}
	w.err = nil
	if s := follow(t, b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "Accept", asStream)); s.text != "The " || s.result == nil || s.result.Turn != 3 {
		t.Errorf("%+v", s)
	}
}

func TestPanic(t *testing.T) {
	b := newBench(t, &writer{fault: "a bug"}, conversation.NewMemory(), nil)
	s := follow(t, b.do(t.Context(), "POST", turns, message{"text": question}, "Accept", asStream))
	if !s.ended || s.wrong == nil || s.wrong.Status != 500 || !strings.Contains(b.log.String(), "a bug") {
		t.Errorf("%+v, log %s", s, b.log)
	}
}

// At its end the server lets turns end for as long as it is told, and then stops
// them; their readers are told, and new ones are refused.
func TestShutdown(t *testing.T) {
	w := &writer{pieces: []string{"The ", "deposit"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	s, r := b.begin(t.Context(), "k")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	closed := make(chan error)
	go func() { closed <- b.server.Close(ctx) }()
	eventually(t, "new turns are refused", func() bool {
		var p server.Problem
		r := b.get("POST", turns, message{"text": question}, &p)
		return r.StatusCode == 503 && p.Code == "shutdown"
	})
	if err := <-closed; err != nil {
		t.Error(err)
	}
	for e := range events(t, r) {
		s.add(t, e)
	}
	if !s.ended || s.wrong == nil || s.wrong.Code != "shutdown" || w.running.Load() != 0 {
		t.Errorf("%+v", s)
	}

	w = &writer{pieces: []string{"The ", "deposit"}, let: make(chan struct{})}
	b = newBench(t, w, conversation.NewMemory(), nil)
	s, r = b.begin(t.Context(), "k")
	go func() { closed <- b.server.Close(context.Background()) }()
	w.let <- struct{}{}
	for e := range events(t, r) {
		s.add(t, e)
	}
	if err := <-closed; err != nil || s.text != "The deposit" || s.result == nil {
		t.Errorf("%v, %+v", err, s)
	}
}

// What memory has let go of is given from the store.
func TestForgotten(t *testing.T) {
	w := &writer{pieces: []string{"200", "."}}
	b := newBench(t, w, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.Keep = time.Nanosecond })
	first := follow(t, b.do(t.Context(), "POST", turns, message{"text": question, "key": "1"}, "Accept", asStream))
	follow(t, b.do(t.Context(), "POST", turns, message{"text": question, "key": "2"}, "Accept", asStream))
	if s := follow(t, b.do(t.Context(), "GET", turns+"/1/events", nil)); s.text != "200." || s.last != first.last-1 || w.runs.Load() != 2 {
		t.Errorf("%+v", s) // one event less, since the two pieces are one
	}
}

// A turn that runs in another process can be followed too, and its result comes when
// it is stored.
func TestElsewhere(t *testing.T) {
	store := conversation.NewMemory()
	w := &writer{pieces: []string{"200", "."}, let: make(chan struct{})}
	b := newBench(t, w, store, nil)
	other := newBench(t, &writer{}, store, nil)
	b.begin(t.Context(), "k")
	var v server.ConversationView
	if other.get("GET", "/api/conversations/a", nil, &v); v.Running == nil || *v.Running != "k" {
		t.Errorf("%+v", v)
	}
	var p server.Problem
	if r := other.get("DELETE", turns+"/k", nil, &p); r.StatusCode != 409 || p.Code != "elsewhere" {
		t.Errorf("%s %+v", r.Status, p)
	}
	ctx, leave := context.WithCancel(t.Context())
	for e := range events(t, other.do(ctx, "GET", turns+"/k/events", nil)) {
		if e.name == "turn" {
			break
		}
	}
	leave()
	r := other.do(t.Context(), "GET", turns+"/k/events", nil)
	rest := other.do(t.Context(), "GET", turns+"/k/events", nil, "Last-Event-ID", "2000000000")
	w.let <- struct{}{}
	if s := follow(t, r); s.names != " turn result end" || s.result.Text != "200." {
		t.Errorf("events%s, %+v", s.names, s.result)
	}
	if s := follow(t, rest); s.names != " result end" || s.last != 2000000002 {
		t.Errorf("events%s to %d", s.names, s.last)
	}
}

// Too many turns at once are refused.
func TestTooMany(t *testing.T) {
	w := &writer{pieces: []string{"200"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.MaxTurns = 1 })
	r := b.do(t.Context(), "POST", turns, message{"text": question, "key": "1"}, "Accept", asStream)
	var p server.Problem
	if r := b.get("POST", "/api/conversations/b/turns", message{"text": question}, &p); r.StatusCode != 503 || p.Code != "busy" {
		t.Errorf("%s %+v", r.Status, p)
	}
	w.let <- struct{}{}
	follow(t, r)
	go func() { w.let <- struct{}{} }()
	eventually(t, "there is room again", func() bool {
		var r server.TurnResult
		b.get("POST", "/api/conversations/b/turns", message{"text": question, "key": "2"}, &r)
		return r.Text == "200"
	})
}

// A turn that takes too long is stopped.
func TestTurnLimit(t *testing.T) {
	w := &writer{pieces: []string{"200"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.TurnLimit = 30 * time.Millisecond })
	var p server.Problem
	if r := b.get("POST", turns, message{"text": question}, &p); r.StatusCode != 504 || p.Code != "late" {
		t.Errorf("%s %+v", r.Status, p)
	}
}

// A reply may be a click, and an edited question is a message of its own.
func TestReplies(t *testing.T) {
	b := newBench(t, &writer{pieces: []string{"450"}}, conversation.NewMemory(), nil)
	var asked, r server.TurnResult
	b.get("POST", turns, message{"text": "What is the deposit?"}, &asked)
	if asked.Kind != conversation.KindClarification || len(asked.Options) != 2 {
		t.Fatalf("%+v", asked)
	}
	var p server.Problem
	for _, c := range []struct {
		m      message
		status int
		code   string
	}{
		{message{"choice": "7"}, 422, "no_option"},
		{message{"choice": "2", "clarification": "c9"}, 409, "settled"},
	} {
		if r := b.get("POST", turns, c.m, &p); r.StatusCode != c.status || p.Code != c.code {
			t.Errorf("%v: %s %+v", c.m, r.Status, p)
		}
	}
	if b.get("POST", turns, message{"choice": "2", "clarification": asked.Clarification, "key": "click"}, &r); r.Kind != conversation.KindAnswer || r.Question != "What is the deposit for Cargo?" {
		t.Errorf("%+v", r)
	}
	if resp := b.get("POST", turns, message{"choice": "1"}, &p); resp.StatusCode != 409 || p.Code != "no_pending" {
		t.Errorf("%s %+v", resp.Status, p)
	}
	if b.get("POST", turns, message{"choice": "2", "clarification": asked.Clarification, "key": "click"}, &r); r.Turn != 2 {
		t.Errorf("clicked twice: %+v", r)
	}
	if b.get("POST", turns, message{"question": "What is the deposit for City?"}, &r); r.Kind != conversation.KindAnswer || r.Question != "What is the deposit for City?" || r.Turn != 3 {
		t.Errorf("%+v", r)
	}
}

// What is served may come late, in parts, or never.
func TestOpening(t *testing.T) {
	store := conversation.NewMemory()
	ready := newBench(t, &writer{pieces: []string{"200"}}, store, nil)
	ready.get("POST", turns, message{"text": question, "key": "k"}, nil)
	whole, err := ready.server.Backend()
	if err != nil {
		t.Fatal(err)
	}
	let := make(chan struct{})
	tries := 0
	s, err := server.New(server.Options{Open: func(ctx context.Context) (*server.Backend, error) {
		if tries++; tries == 1 {
			return &server.Backend{Store: store}, &server.ServiceError{Service: "Qdrant", Err: errors.New("connection refused")}
		}
		select {
		case <-let:
		case <-ctx.Done():
		}
		return whole, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Server: ready.Server, t: t, server: s}
	b.Server.Config.Handler = s.Handler()
	defer s.Close(context.Background())
	eventually(t, "the store is there", func() bool { return b.do(t.Context(), "GET", "/api/conversations", nil).StatusCode == 200 })
	var view server.ConversationView
	if r := b.get("GET", "/api/conversations/a", nil, &view); r.StatusCode != 200 || len(view.Turns) != 1 {
		t.Errorf("%s %+v", r.Status, view)
	}
	if told := follow(t, b.do(t.Context(), "GET", turns+"/k/events", nil)); told.text != "200" {
		t.Errorf("%+v", told)
	}
	var p server.Problem
	if r := b.get("POST", turns, message{"text": question}, &p); r.StatusCode != 503 || p.Service != "Qdrant" || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s %+v", r.Status, p)
	}
	close(let)
	eventually(t, "it answers", func() bool {
		var r server.TurnResult
		b.get("POST", turns, message{"text": question}, &r)
		return r.Text == "200"
	})
}
