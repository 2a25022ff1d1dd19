package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server"
	"github.com/askback/askback/server/keys"
	"github.com/askback/askback/server/tenant"
)

// keyed is a server that takes keys, reached from any address.
type keyed struct {
	*bench
	file keys.File
	url  string
}

func newKeyed(t *testing.T, w *writer, change func(*server.Options)) *keyed {
	t.Helper()
	k := &keyed{file: keys.File{Path: filepath.Join(t.TempDir(), "keys.json")}}
	k.key(t, "larkwheel")
	ring, err := keys.Open(k.file.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.bench = newBench(t, w, tenant.Conversations(conversation.NewMemory()), func(o *server.Options, _ *http.Server) {
		o.Keys = ring
		if change != nil {
			change(o)
		}
	})
	k.server.Handle("/v1/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "v1 of "+server.User(r.Context())) }))
	k.server.HandlePublic("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page") }))
	k.server.HandleMetrics("GET /metrics", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "metrics") }))
	k.url = k.from(t, k.server.Handler())
	return k
}

// from serves a handler for requests that come from the address in X-Test-From.
func (k *keyed) from(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := r.Header.Get("X-Test-From"); a != "" {
			r.RemoteAddr = a
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func (k *keyed) key(t *testing.T, of string) string {
	t.Helper()
	n := keys.New{Name: "test", Tenant: of, Metrics: of == ""}
	_, secret, err := k.file.Create(n)
	if err != nil {
		t.Fatal(err)
	}
	return secret.Reveal()
}

func (k *keyed) send(t *testing.T, method, path, body string, header ...string) (status int, text string, h http.Header) {
	t.Helper()
	return send(t, method, k.url+path, body, header...)
}

func send(t *testing.T, method, url, body string, header ...string) (status int, text string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

// Who may come in by which door.
func TestDoors(t *testing.T) {
	k := newKeyed(t, &writer{pieces: []string{"200"}}, nil)
	good, counts := "Bearer "+k.key(t, "larkwheel"), "Bearer "+k.key(t, "")
	for _, c := range []struct {
		path, key     string
		status        int
		says, without string
	}{
		{"/api/conversations", good, 200, "[", "detail"},
		{"/api/conversations", "bearer" + good[6:], 200, "[", "detail"},
		{"/api/conversations", "", 401, `"code":"key"`, ""},
		{"/api/conversations", good[7:], 401, "Authorization: Bearer", ""},
		{"/api/conversations", "Basic " + good[7:], 401, "", ""},
		{"/api/conversations", good + "x", 401, "not known", ""},
		{"/api/conversations", "Bearer ", 401, "", ""},
		{"/api/conversations", counts, 403, "metrics alone", ""},
		{"/api/nothing", "", 401, "", ""},
		{"/openapi.json", "", 401, "", "paths"},
		{"/v1/models", "", 401, `{"error":{`, "title"},
		{"/v1/models", good, 200, "v1 of larkwheel", ""},
		{"/metrics", "", 401, "", "metrics\n"},
		{"/metrics", good, 403, "", ""},
		{"/metrics", counts, 200, "metrics", ""},
		{"/", "", 200, "page", ""},
		{"/c/x", "", 200, "page", ""},
		{"/healthz", "", 200, "ok", ""},
		{"/readyz", "", 200, `"services":[]`, ""},
		{"/readyz", "Bearer wrong", 200, "ready", ""},
		{"/api/../metrics", "", 401, "", "metrics\n"},
		{"//metrics", "", 401, "", ""},
		{"/%6detrics", "", 401, "", ""},
		{"/metrics/", "", 200, "page", "metrics"},
	} {
		header := []string{}
		if c.key != "" {
			header = []string{"Authorization", c.key}
		}
		status, text, h := k.send(t, "GET", c.path, "", header...)
		if status != c.status || !strings.Contains(text, c.says) || c.without != "" && strings.Contains(text, c.without) {
			t.Errorf("%s with %.20q: %d %s", c.path, c.key, status, text)
		}
		if status == 401 && h.Get("WWW-Authenticate") == "" || h.Get("Content-Security-Policy") == "" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s with %.20q: %v", c.path, c.key, h)
		}
	}
	if status, _, _ := k.send(t, "GET", "/api/conversations", "", "Authorization", "Bearer wrong", "Authorization", good); status != 401 {
		t.Errorf("two keys: %d", status)
	}
	if status, _, _ := k.send(t, "GET", "/api/conversations?key="+good[7:], ""); status != 401 {
		t.Errorf("a key in the address: %d", status)
	}
	if err := os.WriteFile(k.file.Path, []byte("oops"), 0o600); err != nil {
		t.Fatal(err)
	}
	for status := 0; status != 503; {
		var text string
		if status, text, _ = k.send(t, "GET", "/api/conversations", "", "Authorization", good); strings.Contains(text, k.file.Path) || status != 200 && status != 503 {
			t.Fatalf("a broken file of keys: %d %s", status, text)
		}
	}
}

// Attempts without a valid key are limited by address, and do not shut out who has one.
func TestGuessing(t *testing.T) {
	k := newKeyed(t, &writer{}, nil)
	good := "Bearer " + k.key(t, "larkwheel")
	limited := 0
	for range 30 {
		status, text, h := k.send(t, "GET", "/api/conversations", "", "Authorization", "Bearer wrong", "X-Test-From", "192.0.2.7:1000")
		switch status {
		case 401:
			if limited > 0 {
				t.Errorf("let in again")
			}
		case 429:
			limited++
			if n, err := strconv.Atoi(h.Get("Retry-After")); err != nil || n < 1 || !strings.Contains(text, "attempts") {
				t.Errorf("%s %v", text, h)
			}
		default:
			t.Fatalf("%d %s", status, text)
		}
	}
	if limited < 15 {
		t.Errorf("%d of 30 attempts were refused", limited)
	}
	for _, c := range [][2]string{{"192.0.2.7:1001", good}, {"192.0.2.8:1000", "Bearer wrong"}} {
		if status, _, _ := k.send(t, "GET", "/api/conversations", "", "Authorization", c[1], "X-Test-From", c[0]); status == 429 {
			t.Errorf("%s is shut out", c[0])
		}
	}
}

// How much one key may ask for is limited, and without keys one address beyond this
// machine; a message that is sent again is not counted again.
func TestRates(t *testing.T) {
	turn := func(key string) string { return `{"text":"What is the City deposit?","key":"` + key + `"}` }
	t.Run("keys", func(t *testing.T) {
		k := newKeyed(t, &writer{pieces: []string{"200"}}, func(o *server.Options) { o.Limits = server.Limits{Turns: 6, Uploads: 2} })
		a, b := "Bearer "+k.key(t, "larkwheel"), "Bearer "+k.key(t, "larkwheel")
		ask := func(auth, key string) (int, string, http.Header) {
			return k.send(t, "POST", "/api/conversations/c/turns", turn(key), "Authorization", auth)
		}
		for i := range 3 {
			for range 5 { // one turn
				if status, text, _ := ask(a, fmt.Sprint(i)); status != 200 {
					t.Fatalf("%d %s", status, text)
				}
			}
		}
		status, text, h := ask(a, "over")
		var p server.Problem
		if n, err := strconv.Atoi(h.Get("Retry-After")); json.Unmarshal([]byte(text), &p) != nil || status != 429 || p.Code != "rate" || err != nil || n < 1 || n > 10 || h.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %s %v", status, text, h)
		}
		if status, text, _ := k.send(t, "POST", "/api/conversations/c/turns/0/preview", "{}", "Authorization", a); status != 429 {
			t.Errorf("a preview: %d %s", status, text)
		}
		if status, _, _ := ask(b, "other"); status != 200 {
			t.Errorf("another key of the tenant: %d", status)
		}
		if status, _, _ := k.send(t, "GET", "/api/conversations", "", "Authorization", a); status != 200 {
			t.Errorf("reading: %d", status)
		}
	})
	t.Run("addresses", func(t *testing.T) {
		k := &keyed{bench: newBench(t, &writer{pieces: []string{"200"}}, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.Limits.Turns = 2 })}
		k.url = k.from(t, k.server.Handler())
		for i, c := range []struct {
			from   string
			status int
		}{
			{"192.0.2.7:1", 200}, {"192.0.2.7:2", 429}, {"192.0.2.8:1", 200},
			{"[2001:db8:1:2::1]:1", 200}, {"[2001:db8:1:2:3::9]:1", 429}, {"[2001:db8:1:3::1]:1", 200},
			{"127.0.0.1:1", 200}, {"127.0.0.1:2", 200}, {"[::1]:1", 200}, {"[::1]:2", 200}, {"[::ffff:192.0.2.8]:1", 429},
		} {
			if status, text, _ := k.send(t, "POST", "/api/conversations/c/turns", turn(fmt.Sprint(i)), "X-Test-From", c.from, "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i)); status != c.status {
				t.Errorf("%s: %d %s", c.from, status, text)
			}
		}
	})
}

// Turns of all protocols share one limit of how many may run.
func TestTurnsOfAllProtocols(t *testing.T) {
	w := &writer{pieces: []string{"200"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), func(o *server.Options, _ *http.Server) { o.MaxTurns = 2 })
	end, err := b.server.BeginTurn()
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", b.URL+turns, strings.NewReader(`{"text":"What is the City deposit?","key":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", asStream)
	running, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Body.Close()
	if status, text, h := send(t, "POST", b.URL+"/api/conversations/other/turns", `{"text":"x"}`); status != 503 || !strings.Contains(text, "busy") || h.Get("Retry-After") == "" {
		t.Errorf("%d %s", status, text)
	}
	if _, err := b.server.BeginTurn(); err == nil {
		t.Error("a third turn begins")
	}
	end()
	end() // once is enough
	again, err := b.server.BeginTurn()
	if err != nil {
		t.Error(err)
	}
	if _, err := b.server.BeginTurn(); err == nil {
		t.Error("a third turn begins")
	}
	again()
	close(w.let)
}

// Pages of other sites may not use the API, but for those that are let.
func TestOrigins(t *testing.T) {
	const friend, stranger = "https://chat.example.com", "https://evil.example"
	for _, allowed := range []bool{false, true} {
		k := newKeyed(t, &writer{pieces: []string{"200"}}, func(o *server.Options) {
			if allowed {
				o.Origins = []string{friend}
			}
		})
		good := "Bearer " + k.key(t, "larkwheel")
		for _, origin := range []string{friend, stranger, "null", friend + ".evil.example", "http://chat.example.com"} {
			let := allowed && origin == friend
			status, _, h := k.send(t, "OPTIONS", "/api/conversations/c/turns", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
			if got := h.Get("Access-Control-Allow-Origin"); (got == origin) != let || got != "" && !let || (status == 204) != let {
				t.Errorf("%s (allowed: %v): preflight %d %v", origin, allowed, status, h)
			}
			if h.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("cookies are asked for")
			}
			status, text, h := k.send(t, "POST", "/api/conversations/c/turns", `{"text":"What is the City deposit?"}`, "Origin", origin, "Sec-Fetch-Site", "cross-site", "Authorization", good)
			if (status == 200) != let || !let && status != 403 || (h.Get("Access-Control-Allow-Origin") == origin) != let {
				t.Errorf("%s (allowed: %v): %d %s %v", origin, allowed, status, text, h)
			}
			if allowed && !strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
				t.Errorf("%s: a cache may mix up sites: %v", origin, h)
			}
		}
	}
	if _, err := server.New(server.Options{Open: nil, Origins: []string{"chat.example.com/"}}); err == nil {
		t.Error("what is no origin is taken")
	}
}
