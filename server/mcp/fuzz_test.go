package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/askback/askback/server/mcp"
)

// hello begins a session of the protocol.
func hello(version string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
}

// lines are messages, good and bad, one after the other.
var lines = []string{
	hello(sessions),
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"question":"What is the deposit?","conversation":"c"}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"deposit","limit":-1}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"question":"\u0000","conversation":".."},"requestState":"{\"conversation\":\"c\",\"round\":-1}","inputResponses":{"reply":{"action":"accept","content":{"choice":5}}}}}`,
	`[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`,
	`{"jsonrpc":"2.0","id":{},"method":"ping"}`,
	`{"jsonrpc":"2.0","id":1e400,"method":"ping","METHOD":"initialize"}`,
	`{"jsonrpc":"2.0","id":3,"result":{}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"ask\",\"arguments\":\"\xff\"}}",
	`null`, `{}`, `{`, "\x00",
}

// FuzzStream says anything to a session: it answers in whole messages, each on its
// line, goes on with the next message, and ends when the client leaves.
func FuzzStream(f *testing.F) {
	for _, l := range lines {
		f.Add(l)
	}
	f.Add(strings.Join(lines, "\n"))
	f.Fuzz(func(t *testing.T, said string) {
		if strings.Contains(said, `"last"`) {
			t.Skip("it says what the test does")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b := newBench(t, mcp.Options{})
		in, say := io.Pipe()
		hear, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- b.Stream(ctx, in, out)
			out.Close()
			in.Close()
		}()
		go func() {
			_, _ = io.WriteString(say, hello(sessions)+"\n"+said+"\n"+`{"jsonrpc":"2.0","id":"last","method":"ping"}`+"\n")
		}()
		answered := false
		for answers := bufio.NewScanner(hear); !answered && answers.Scan(); {
			var m struct {
				Version string `json:"jsonrpc"`
				ID      any
				Result  json.RawMessage
			}
			line := answers.Bytes()
			if len(line) > 0 && line[0] == '[' {
				continue // of a batch
			}
			if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
				t.Errorf("%q: %v", line, err)
			}
			answered = m.ID == "last"
		}
		if !answered {
			t.Errorf("no answer to a message after %q", said)
		}
		go func() { _, _ = io.Copy(io.Discard, hear) }()
		say.Close()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// FuzzHTTP posts anything: it is answered, and never with the server's own failure.
func FuzzHTTP(f *testing.F) {
	for i, l := range lines {
		f.Add(l, []string{sessions, alone, ""}[i%3], "")
	}
	f.Add(lines[3], alone, "x-00000000")
	f.Add(hello(alone), "9999-99-99", "../..")
	f.Fuzz(func(t *testing.T, body, version, session string) {
		if !httpguts.ValidHeaderFieldValue(version) || !httpguts.ValidHeaderFieldValue(session) {
			t.Skip("net/http refuses it")
		}
		ctx, cancel := context.WithCancel(t.Context())
		b := newBench(t, mcp.Options{Allow: func(context.Context) error { return nil }})
		h := b.HTTP()
		post := func(version, session, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
			for name, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Session-Id": session, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		leave := func(session string) {
			if session == "" {
				return
			}
			r := httptest.NewRequestWithContext(ctx, http.MethodDelete, "http://127.0.0.1/mcp", nil)
			r.Header.Set("Mcp-Session-Id", session)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		defer cancel()
		if session == "" && version < alone && version != "" {
			session = post(version, "", hello(sessions)).Header().Get("Mcp-Session-Id")
		}
		w := post(version, session, body)
		if w.Code >= 500 || w.Code < 300 && w.Body.Len() > 0 && !bytes.Contains(w.Body.Bytes(), []byte(`"jsonrpc"`)) {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
		leave(session)
		if got := w.Header().Get("Mcp-Session-Id"); got != session {
			leave(got)
		}
	})
}
