package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/server"
	"github.com/askback/askback/server/keys"
)

// bearer sends a key with each request.
type bearer struct{ key string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.key != "" {
		r.Header.Set("Authorization", "Bearer "+b.key)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// gotten is what came back of a request.
type gotten struct {
	status int
	header http.Header
	body   string
}

// send sends a request with a key.
func send(t *testing.T, key, method, target, kind, body string) gotten {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	resp, err := (&http.Client{Transport: bearer{key}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return gotten{resp.StatusCode, resp.Header, string(text)}
}

// operation is one of the API's, as it describes itself.
type operation struct{ method, path, id string }

// operations reads all of them from the description.
func operations(t *testing.T, key, base string) (all []operation) {
	t.Helper()
	r := send(t, key, "GET", base+"/openapi.json", "", "")
	var d struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(r.body), &d); err != nil {
		t.Fatalf("%d: %v", r.status, err)
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			var o struct {
				OperationID string `json:"operationId"`
			}
			if json.Unmarshal(d.Paths[path][method], &o) == nil && o.OperationID != "" {
				all = append(all, operation{strings.ToUpper(method), path, o.OperationID})
			}
		}
	}
	if len(all) < 15 {
		t.Fatalf("only %d operations are described", len(all))
	}
	return all
}

// bodies are what is sent to the operations that take something.
var bodies = map[string][2]string{
	"start-turn":          {"application/json", `{"text":"What is the code of the vault?","key":"turn-1"}`},
	"preview-turn":        {"application/json", `{"pre_threshold":0.5}`},
	"rename-conversation": {"application/json", `{"title":"Mine now"}`},
	"put-document":        {"application/octet-stream", "# Another\n\nNothing about it stands here.\n"},
	"upload-documents": {"multipart/form-data; boundary=x",
		"--x\r\nContent-Disposition: form-data; name=\"files\"; filename=\"theirs.md\"\r\n\r\n# Another\n\nNothing about it stands here.\n\r\n--x--\r\n"},
}

var parameter = regexp.MustCompile(`\{([^}]+)\}`)

// at is the operation's address with these values for its parameters.
func (o operation) at(t *testing.T, base string, values map[string]string) string {
	t.Helper()
	return base + parameter.ReplaceAllStringFunc(o.path, func(p string) string {
		v, ok := values[p[1:len(p)-1]]
		if !ok {
			t.Fatalf("%s %s: this test does not know what %s names; say it here, so that the other tenant's can be tried", o.method, o.path, p)
		}
		return url.PathEscape(v)
	})
}

func (o operation) send(t *testing.T, key, base string, values map[string]string) gotten {
	t.Helper()
	body := bodies[o.id]
	if body[0] == "" && (o.method == "POST" || o.method == "PUT" || o.method == "PATCH") {
		t.Fatalf("%s %s: this test does not know what to send", o.method, o.path)
	}
	return send(t, key, o.method, o.at(t, base, values), body[0], body[1])
}

// What the tenant larkwheel has and nobody else may see. None of it is in what the
// other tenant sends.
var theirs = []string{"MARMALADE", "zorbalite", "9931"}

const (
	theirDocument = "# The zorbalite vault\n\nThe zorbalite vault of Larkwheel is opened with the code 9931-MARMALADE. Its part number is ZRB-9931.\n"
	theirQuestion = "What is the code of the zorbalite vault?"
)

// What one tenant has is not there for another, whichever operation it tries: the
// operations are read from the description, so that a new one is tried too. Nor can it
// tell what is there from what is not, or change it.
func TestTenantsApart(t *testing.T) {
	for _, place := range []string{"memory", "files", "PostgreSQL", "Qdrant"} {
		t.Run(place, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			args := []string{"--addr=127.0.0.1:0", "--keys=keys.json", "--turn-rate=-1", "--upload-rate=-1"}
			switch place {
			case "files":
				args = append(args, "--store=c.db", "--index=i.db", "--sample")
			case "PostgreSQL":
				store := os.Getenv("ASKBACK_TEST_POSTGRES")
				if store == "" {
					t.Skip("no PostgreSQL: ./test starts one, or set ASKBACK_TEST_POSTGRES to the URL of a server")
				}
				args = append(args, "--store="+store)
			case "Qdrant":
				t.Setenv("QDRANT_ADDR", qdranttest.Start(t).Addr)
				t.Setenv("QDRANT_COLLECTION", "tenants")
				args = append(args, "--sample")
			}
			testTenantsApart(t, args)
		})
	}
}

func testTenantsApart(t *testing.T, args []string) {
	file := keys.File{Path: "keys.json"}
	run := strings.ToLower(rand.Text()[:8]) // a database may hold what earlier runs left
	make := func(n keys.New) string {
		n.Name = "test"
		_, secret, err := file.Create(n)
		if err != nil {
			t.Fatal(err)
		}
		return secret.Reveal()
	}
	ours, other, counts := make(keys.New{Tenant: "larkwheel-" + run}), make(keys.New{Tenant: "brook-" + run}), make(keys.New{Metrics: true})
	gone, revoked, err := file.Create(keys.New{Name: "gone", Tenant: "larkwheel-" + run})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Revoke(gone.ID); err != nil {
		t.Fatal(err)
	}
	s := serve(t, args...)
	ask := func(key, conversation, body string) (r server.TurnResult) {
		t.Helper()
		got := send(t, key, "POST", s.url+"/api/conversations/"+conversation+"/turns", "application/json", body)
		if err := json.Unmarshal([]byte(got.body), &r); err != nil || got.status != http.StatusOK {
			t.Fatalf("%d %s: %v", got.status, got.body, err)
		}
		return r
	}
	if r := send(t, ours, "PUT", s.url+"/api/documents/vault.md", "application/octet-stream", theirDocument); r.status != http.StatusOK {
		t.Fatalf("upload: %d %s", r.status, r.body)
	}
	answer := ask(ours, "ours", `{"key":"turn-1","text":"`+theirQuestion+`"}`)
	if !strings.Contains(answer.Text, "9931-MARMALADE") || len(answer.Citations) == 0 {
		t.Fatalf("the tenant's own document is not found: %+v", answer)
	}
	passage := answer.Citations[0].Passage
	// Documents for everyone are found beside it.
	if r := ask(ours, "common", `{"text":"What does ERR-5172 mean?"}`); !strings.Contains(r.Text, "speed sensor") {
		t.Errorf("a common document is not found: %+v", r)
	}
	seen := func() string { // all that the tenant has
		t.Helper()
		all := ""
		for _, path := range []string{"/api/conversations", "/api/conversations/ours", "/api/conversations/ours/export", "/api/documents", "/api/passages/" + url.PathEscape(passage)} {
			r := send(t, ours, "GET", s.url+path, "", "")
			if r.status != http.StatusOK {
				t.Errorf("%s: %d %s", path, r.status, r.body)
			}
			all += r.body + "\n"
		}
		return all
	}
	before := seen()
	all := operations(t, ours, s.url)
	// What makes something of one's own of the name comes after what looks for it.
	makes := []string{"start-turn", "put-document", "upload-documents"}
	slices.SortStableFunc(all, func(a, b operation) int { return slices.Index(makes, a.id) - slices.Index(makes, b.id) })
	there := map[string]string{"conversation": "ours", "turn": "turn-1", "name": "vault.md", "id": passage}
	// Nothing of these is there.
	nowhere := map[string]string{"conversation": "nops", "turn": "turn-2", "name": "vuult.md", "id": strings.Repeat("x", len(passage))}
	same := func(text string) string {
		for name, v := range there {
			text = strings.ReplaceAll(text, v, "<"+name+">")
		}
		for name, v := range nowhere {
			text = strings.ReplaceAll(text, v, "<"+name+">")
		}
		return text
	}
	leaks := func(what, text string) {
		t.Helper()
		for _, secret := range append(theirs, passage) {
			if secret == passage && strings.Contains(what, passage) {
				continue // said by who asked
			}
			if strings.Contains(text, secret) {
				t.Errorf("%s: the other tenant is shown %q: %.300s", what, secret, text)
			}
		}
	}
	for _, o := range all {
		what := o.at(t, o.method+" ", there)
		open := o.path == "/healthz" || o.path == "/readyz"
		for key, want := range map[string]int{"": 401, keys.Prefix + "wrong": 401, revoked.Reveal(): 401, counts: 403} {
			r := o.send(t, key, s.url, there)
			if !open && r.status != want && r.status != http.StatusTooManyRequests || open && r.status != http.StatusOK {
				t.Errorf("%s with the key %.12q: %d, want %d: %s", what, key, r.status, want, r.body)
			}
			leaks(what, r.body)
		}
		got, none := o.send(t, other, s.url, there), o.send(t, other, s.url, nowhere)
		leaks(what, got.body+fmt.Sprint(got.header))
		if got.status != none.status || got.status >= 300 && same(got.body) != same(none.body) {
			t.Errorf("%s: what is another's can be told from what is not there:\n%d %s\n%d %s", what, got.status, got.body, none.status, none.body)
		}
		if strings.Contains(o.path, "{") && o.method == "GET" && got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s, want 404", what, got.status, got.body)
		}
	}
	// Conversations that the other has begun now under the same ids are its own.
	for _, path := range []string{"/api/conversations", "/api/conversations/ours", "/api/documents"} {
		leaks(path, send(t, other, "GET", s.url+path, "", "").body)
	}

	// The other protocols.
	chat := func(key string) gotten {
		return send(t, key, "POST", s.url+"/v1/chat/completions", "application/json",
			`{"model":"askback","messages":[{"role":"user","content":"What is the code of the vault?"}],"askback":{"conversation":"ours","trace":true}}`)
	}
	if r := chat(other); r.status != http.StatusOK {
		t.Errorf("%d %s", r.status, r.body)
	} else {
		leaks("/v1/chat/completions", r.body)
	}
	if r := chat(""); r.status != http.StatusUnauthorized || !strings.Contains(r.body, `"error":{`) {
		t.Errorf("/v1 without a key: %d %s", r.status, r.body)
	}
	if r := chat(ours); !strings.Contains(r.body, "MARMALADE") {
		t.Errorf("/v1 with the tenant's key: %d %s", r.status, r.body)
	}
	client := func(key string) (*sdk.ClientSession, error) {
		return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{key}}}, nil)
	}
	if _, err := client(""); err == nil {
		t.Error("/mcp lets in without a key")
	}
	for _, key := range []string{ours, other} {
		c, err := client(key)
		if err != nil {
			t.Fatal(err)
		}
		for name, arguments := range map[string]map[string]any{"search": {"query": "the code of the vault"}, "ask": {"question": "What is the code of the vault?", "conversation": "ours"}} {
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
			if err != nil {
				t.Fatal(err)
			}
			text, _ := json.Marshal(r)
			if key == other {
				leaks("/mcp "+name, string(text))
			} else if !strings.Contains(string(text), "MARMALADE") {
				t.Errorf("/mcp %s with the tenant's key: %s", name, text)
			}
		}
		c.Close()
	}
	// A session is its tenant's.
	session := ""
	for i, key := range []string{ours, ours, other, ours} {
		way, method := "POST", `"method":"tools/list"`
		switch i {
		case 3:
			way = "DELETE" // ends it
		case 0:
			method = `"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`
		}
		r, err := http.NewRequestWithContext(t.Context(), way, s.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,`+method+`}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := (&http.Client{Transport: bearer{key}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if want := []int{200, 200, 404, 204}[i]; resp.StatusCode != want {
			t.Errorf("request %d of a session: %s, want %d", i, resp.Status, want)
		}
		if i == 0 {
			session = resp.Header.Get("Mcp-Session-Id")
		}
	}
	if session == "" {
		t.Error("no session")
	}
	if r := send(t, ours, "DELETE", s.url+"/api/conversations/ours/turns/none", "", ""); r.status != http.StatusNotFound {
		t.Errorf("%d", r.status)
	}

	// Metrics are for their own key.
	for key, want := range map[string]int{"": 401, ours: 403, counts: 200} {
		if r := send(t, key, "GET", s.url+"/metrics", "", ""); r.status != want {
			t.Errorf("/metrics with %.12q: %d, want %d", key, r.status, want)
		}
	}
	// Nothing of the tenant's has changed, but for what it did itself.
	for _, line := range strings.Split(before, "\n")[1:] {
		if now := seen(); !strings.Contains(now, line) && !strings.Contains(line, `"id":"ours"`) {
			t.Errorf("changed:\n%s\nnow\n%s", line, now)
		}
	}
	if code := s.stop(); code != exitAnswered {
		t.Errorf("exit code %d, %s", code, &s.err)
	}
	for _, key := range []string{ours, other, counts} {
		if strings.Contains(s.err.String(), strings.TrimPrefix(key, keys.Prefix)) {
			t.Errorf("a key is in the log: %s", &s.err)
		}
	}
}
