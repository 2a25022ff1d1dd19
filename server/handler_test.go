package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server"
)

// A bad request is answered with what is wrong, and where.
func TestBadRequests(t *testing.T) {
	b := newBench(t, &writer{pieces: []string{"200"}}, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.Hosts = []string{"127.0.0.1"} })
	long := strings.Repeat("x", 1025)
	for _, c := range []struct {
		name, method, path string
		body               any
		header             []string
		status             int
		code, says         string // in the detail
		where              string // location of the first error
	}{
		{"no such place", "GET", "/api/nothing", nil, nil, 404, "not_found", "/openapi.json", ""},
		{"another method", "PUT", turns, "{}", nil, 405, "method", "POST", ""},
		{"another method of a conversation", "POST", "/api/conversations/a", "{}", nil, 405, "method", "PATCH", ""},
		{"no body", "POST", turns, nil, nil, 400, "invalid", "body is required", ""},
		{"broken JSON", "POST", turns, "{\n  \"text\": \"a\",\n  oops\n}", nil, 400, "invalid", "line 3, column 3", "body"},
		{"cut JSON", "POST", turns, `{"text":`, nil, 400, "invalid", "line 1, column 8", "body"},
		{"not an object", "POST", turns, `["text"]`, nil, 422, "invalid", "expected object", "body"},
		{"a wrong type", "POST", turns, `{"text": 5}`, nil, 422, "invalid", "expected string", "body.text"},
		{"an unknown field", "POST", turns, `{"txt": "x", "text": "y"}`, nil, 422, "invalid", "unexpected property", "body.txt"},
		{"nothing said", "POST", turns, `{}`, nil, 422, "invalid", "one of text, choice and question", "body"},
		{"two things said", "POST", turns, `{"text": "x", "choice": "1"}`, nil, 422, "invalid", "one of text, choice and question", "body"},
		{"no words", "POST", turns, `{"text": " \n "}`, nil, 422, "invalid", "empty", "body.text"},
		{"only what is cleaned away", "POST", turns, `{"text": "\u0007\ufeff"}`, nil, 422, "empty", "empty", ""},
		{"a long message", "POST", turns, message{"text": strings.Repeat("word ", 8000)}, nil, 413, "too_long", "the limit is", ""},
		{"a body too large", "POST", turns, message{"text": strings.Repeat("word ", 80000)}, nil, 413, "too_long", "too large", ""},
		{"a long key", "POST", turns, message{"text": "x", "key": long}, nil, 422, "invalid", "length", "body.key"},
		{"a long id", "GET", "/api/conversations/" + long, nil, nil, 422, "invalid", "length", "path.conversation"},
		{"an id with NUL", "GET", "/api/conversations/a%00b", nil, nil, 422, "invalid", "control character", "path.conversation"},
		{"an id that is a folder", "GET", "/api/conversations/%2e", nil, nil, 422, "invalid", "not . or ..", "path.conversation"},
		{"an id that is the folder above", "POST", "/api/conversations/%2e%2E/turns", message{"text": "x"}, nil, 422, "invalid", "not . or ..", "path.conversation"},
		{"a key that is a folder", "POST", turns, message{"text": "x", "key": ".."}, nil, 422, "invalid", "not . or ..", "body.key"},
		{"an id that is no text", "GET", "/api/conversations/a%ff", nil, nil, 422, "invalid", "UTF-8", "path.conversation"},
		{"another type", "POST", turns, `text=x`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "invalid", "application/x-www-form-urlencoded", "body"},
		{"a wrong event", "GET", turns + "/k/events", nil, []string{"Last-Event-ID", "x"}, 422, "invalid", "integer", "header.Last-Event-ID"},
		{"an event before the first", "GET", turns + "/k/events", nil, []string{"Last-Event-ID", "-1"}, 422, "invalid", ">= 0", "header.Last-Event-ID"},
		{"too many", "GET", "/api/conversations?limit=1000", nil, nil, 422, "invalid", "<= 200", "query.limit"},
		{"no number", "GET", "/api/conversations?limit=x", nil, nil, 422, "invalid", "integer", "query.limit"},
		{"an unknown parameter", "GET", "/api/conversations?lmit=5", nil, nil, 422, "invalid", "unknown query parameter", "query.lmit"},
		{"no cursor", "GET", "/api/conversations?cursor=x", nil, nil, 422, "invalid", "cursor", "query.cursor"},
		{"a page of another site", "POST", turns, `{"text": "x"}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_origin", "another site", ""},
		{"a page of another origin", "POST", turns, `{"text": "x"}`, []string{"Origin", "http://evil.example"}, 403, "cross_origin", "another site", ""},
		{"another name", "GET", "/api/conversations", nil, []string{"Host", "evil.example:80"}, 421, "host", "127.0.0.1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p server.Problem
			r := b.get(c.method, c.path, c.body, &p, c.header...)
			if r.StatusCode != c.status || p.Status != c.status || p.Code != c.code || p.Title == "" || !strings.Contains(p.Detail, c.says) {
				t.Errorf("%s %+v", r.Status, p)
			}
			for i, e := range p.Errors {
				if i > 0 && strings.HasPrefix(p.Errors[i-1].Location, e.Location) {
					t.Errorf("one fault is told twice: %s", p.Detail)
				}
			}
			if where := ""; len(p.Errors) > 0 || c.where != "" {
				if len(p.Errors) > 0 {
					where = p.Errors[0].Location
				}
				if where != c.where {
					t.Errorf("the fault is at %q, want %q", where, c.where)
				}
			}
			if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("type %q", got)
			}
			if r.StatusCode == 405 && r.Header.Get("Allow") == "" {
				t.Error("does not say what is allowed")
			}
		})
	}
	if kept := b.stored(); kept != nil {
		t.Errorf("a bad request was stored: %+v", kept)
	}
}

// Every response, good or bad, has the headers that keep a page to itself.
func TestHeaders(t *testing.T) {
	b := newBench(t, &writer{pieces: []string{"200"}}, conversation.NewMemory(), nil)
	b.server.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("page")) }))
	for _, path := range []string{"/", "/x", "/api/conversations", "/api/nothing", "/openapi.json", "/healthz"} {
		h := b.do(t.Context(), "GET", path, nil).Header
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if r := b.do(t.Context(), "POST", turns, message{"text": question}, "Sec-Fetch-Site", "same-origin", "Origin", b.URL); r.StatusCode != 200 {
		t.Errorf("the page itself: %s", r.Status)
	}
}

// A reader never takes what a client sends for anything but a message, whatever that
// is, and never fails inside.
func FuzzTurnBody(f *testing.F) {
	for _, seed := range []string{`{"text":"x"}`, `{"choice":"1","clarification":"c1"}`, `{"text":"` + "\xff" + `"}`, `{`, `null`, `{"key":"\u0000","text":"x"}`, `{"text":"x","text":5}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		b := newBench(t, &writer{pieces: []string{"200"}}, conversation.NewMemory(), nil)
		r := b.do(t.Context(), "POST", turns, body)
		if r.StatusCode >= 500 {
			t.Errorf("%q: %s, %s", body, r.Status, b.log)
		}
	})
}

// A body that does not arrive is not waited for, wherever it is sent; one that is
// there sets no limit to the answer.
func TestSlowBody(t *testing.T) {
	const limit = 200 * time.Millisecond
	b := newBench(t, &writer{pieces: []string{"200"}}, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.BodyTime = limit })
	b.server.Handle("/reads", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusTeapot)
		case <-time.After(2 * limit):
		}
	}))
	b.server.Handle("/ignores", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", turns, `{"te`, 408},
		{"PATCH", "/api/conversations/a", `{"te`, 408},
		{"GET", "/api/conversations", `{"te`, 200},
		{"POST", "/reads", `{"te`, 408},
		{"POST", "/ignores", `{"te`, 200},
		{"POST", "/reads", `{"text": 12345678}`, 200},
	} {
		for _, length := range []string{"Content-Length: 18", "Transfer-Encoding: chunked"} {
			body := c.body
			if strings.HasPrefix(length, "T") {
				body = fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
				if len(c.body) == 18 {
					body += "0\r\n\r\n"
				}
			}
			conn, err := net.Dial("tcp", b.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", c.method, c.path, length, body)
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s %s, %s: %v", c.method, c.path, length, err)
				continue
			}
			r.Body.Close()
			if r.StatusCode != c.status {
				t.Errorf("%s %s, %s: %s, want %d", c.method, c.path, length, r.Status, c.status)
			}
		}
	}
}
