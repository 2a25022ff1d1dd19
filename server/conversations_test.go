package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server"
)

// byHeader takes the user from a header.
func byHeader(o *server.Options, _ *http.Server) {
	o.User = func(r *http.Request) (string, error) {
		if name := r.Header.Get("X-User"); name != "nobody" {
			return name, nil
		}
		return "", fmt.Errorf("who are you?")
	}
}

func TestConversations(t *testing.T) {
	b := newBench(t, &writer{pieces: []string{"450 €"}}, conversation.NewMemory(), nil)
	b.get("POST", turns, message{"text": "What is the deposit?", "key": "k1"}, nil)
	var v server.ConversationView
	b.get("GET", "/api/conversations/a", nil, &v)
	if v.Title != "What is the deposit?" || v.Pending == nil || v.Pending.Clarification != "c1" || len(v.Pending.Options) != 2 || v.Running != nil || v.Open != nil {
		t.Errorf("%+v", v)
	}
	b.get("POST", turns, message{"choice": "2", "key": "k2"}, nil)
	v = server.ConversationView{}
	b.get("GET", "/api/conversations/a", nil, &v)
	if v.Pending != nil || len(v.Turns) != 2 || v.Earlier != 0 {
		t.Fatalf("%+v", v)
	}
	if turn := v.Turns[1]; turn.ID != "k2" || turn.Number != 2 || turn.Text != "Cargo" || turn.Kind != conversation.KindAnswer ||
		turn.Result == nil || turn.Result.Text != "450 €" || len(turn.Result.Citations) != 1 || turn.Result.Trace.Reply == nil || turn.At.IsZero() {
		t.Errorf("%+v", v.Turns[1])
	}

	var named server.Renamed
	if r := b.get("PATCH", "/api/conversations/a", message{"title": " Deposits\n"}, &named); r.StatusCode != 200 || named.Title != "Deposits" {
		t.Errorf("%s %+v", r.Status, named)
	}
	var list []server.ConversationInfo
	if b.get("GET", "/api/conversations", nil, &list); len(list) != 1 || list[0].Title != "Deposits" || list[0].Turns != 2 || list[0].Pending || list[0].Changed.IsZero() {
		t.Errorf("%+v", list)
	}
	var kept []conversation.Conversation
	if r := b.get("GET", "/api/conversations/a/export", nil, &kept); len(kept) != 1 || kept[0].Title != "Deposits" || kept[0].Turns[1].Detail == nil || !strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%+v", kept)
	}
	if r := b.do(t.Context(), "DELETE", "/api/conversations/a", nil); r.StatusCode != 204 {
		t.Errorf("%s", r.Status)
	}
	for _, c := range [][2]string{{"GET", "/api/conversations/a"}, {"DELETE", "/api/conversations/a"}, {"GET", "/api/conversations/a/export"}, {"GET", turns + "/k1/events"}} {
		var p server.Problem
		if r := b.get(c[0], c[1], nil, &p); r.StatusCode != 404 || p.Code != "not_found" || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v after it was deleted: %s %+v", c, r.Status, p)
		}
	}
}

// A turn that runs is seen, and a conversation that is deleted takes it along.
func TestDeleteWhileATurnRuns(t *testing.T) {
	w := &writer{pieces: []string{"The ", "deposit"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	s, r := b.begin(t.Context(), "k")
	var v server.ConversationView
	if b.get("GET", "/api/conversations/a", nil, &v); v.Running == nil || *v.Running != "k" || v.Open == nil || v.Open.Text != question || v.Title != question || len(v.Turns) != 0 {
		t.Errorf("%+v", v)
	}
	if r := b.do(t.Context(), "DELETE", "/api/conversations/a", nil); r.StatusCode != 204 {
		t.Errorf("%s", r.Status)
	}
	for e := range events(t, r) {
		s.add(t, e)
	}
	if !s.ended || s.wrong == nil || s.wrong.Code != "stopped" || w.running.Load() != 0 || b.stored() != nil {
		t.Errorf("%+v, stored %+v", s, b.stored())
	}
}

// A turn that was broken off is shown with what was said of it; one that another
// program stored, with its text.
func TestOddTurns(t *testing.T) {
	w := &writer{pieces: []string{"The ", "deposit"}, let: make(chan struct{})}
	b := newBench(t, w, conversation.NewMemory(), nil)
	b.begin(t.Context(), "k")
	b.do(t.Context(), "DELETE", turns+"/k", nil)
	claim, err := b.store.Begin(t.Context(), conversation.Request{Conversation: "a", Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 2, Text: "hello", Question: "hello", Kind: conversation.KindAnswer, Reply: "hi"})
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var v server.ConversationView
	if b.get("GET", "/api/conversations/a", nil, &v); len(v.Turns) != 2 || v.Turns[0].Result != nil || v.Turns[0].Partial != "The " || v.Turns[1].ID != "" || v.Turns[1].Result.Text != "hi" || v.Turns[1].Result.Options == nil {
		t.Errorf("%+v", v.Turns)
	}
}

// A list and a long conversation are read in parts, over every store, without a gap
// and without anybody else's.
func TestParts(t *testing.T) {
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "talk.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, store := range map[string]conversation.Store{"memory": conversation.NewMemory(), "file": file} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, &writer{pieces: []string{"200"}}, store, byHeader)
			var want []string
			for i := range 23 {
				user := "ada"
				if i%3 == 1 {
					user = ""
				}
				id := fmt.Sprintf("c %d/ü", i)
				path := "/api/conversations/" + url.PathEscape(id) + "/turns"
				if r := b.do(t.Context(), "POST", path, message{"text": question}, "X-User", user); r.StatusCode != 200 {
					t.Fatal(r.Status)
				}
				if user == "" {
					want = append(want, id)
				}
			}
			slices.Reverse(want)
			for limit := 1; limit <= 9; limit++ {
				var got []string
				next := ""
				for parts := 0; parts < 30; parts++ {
					var list []server.ConversationInfo
					r := b.get("GET", fmt.Sprintf("/api/conversations?limit=%d&cursor=%s", limit, next), nil, &list)
					for _, c := range list {
						got = append(got, c.ID)
					}
					if len(list) > limit {
						t.Errorf("%d of at most %d", len(list), limit)
					}
					if next = r.Header.Get("Askback-Next"); next == "" {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("by %d: %q, want %q", limit, got, want)
				}
			}

			for range 9 {
				b.do(t.Context(), "POST", turns, message{"text": question})
			}
			for _, c := range []struct {
				query   string
				numbers string
				earlier int
			}{
				{"", "[1 2 3 4 5 6 7 8 9]", 0},
				{"?last=3", "[7 8 9]", 6},
				{"?last=3&before=7", "[4 5 6]", 3},
				{"?last=3&before=3", "[1 2]", 0},
				{"?last=3&before=1", "[]", 0},
				{"?last=3&before=99", "[7 8 9]", 6},
				{"?last=3&before=9", "[6 7 8]", 5},
			} {
				var v server.ConversationView
				b.get("GET", "/api/conversations/a"+c.query, nil, &v)
				numbers := []int{}
				for _, turn := range v.Turns {
					numbers = append(numbers, turn.Number)
				}
				if fmt.Sprint(numbers) != c.numbers || v.Earlier != c.earlier {
					t.Errorf("%q: turns %v after %d, want %s after %d", c.query, numbers, v.Earlier, c.numbers, c.earlier)
				}
			}
		})
	}
}

// A conversation belongs to who began it.
func TestUsers(t *testing.T) {
	b := newBench(t, &writer{pieces: []string{"200"}}, conversation.NewMemory(), byHeader)
	b.do(t.Context(), "POST", turns, message{"text": question, "key": "k"}, "X-User", "ada")
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"GET", "/api/conversations/a", nil},
		{"GET", "/api/conversations/a/export", nil},
		{"PATCH", "/api/conversations/a", message{"title": "x"}},
		{"DELETE", "/api/conversations/a", nil},
		{"GET", turns + "/k/events", nil},
		{"DELETE", turns + "/k", nil},
		{"POST", turns, message{"text": question, "key": "k"}},
		{"POST", turns + "/k/preview", message{}},
	} {
		var p server.Problem
		if r := b.get(c.method, c.path, c.body, &p, "X-User", "bob"); r.StatusCode != 403 || p.Code != "user" {
			t.Errorf("%s %s: %s %+v", c.method, c.path, r.Status, p)
		}
		if r := b.get(c.method, c.path, c.body, &p, "X-User", "nobody"); r.StatusCode != 401 || p.Detail != "who are you?" {
			t.Errorf("%s %s: %s %+v", c.method, c.path, r.Status, p)
		}
	}
	if s := follow(t, b.do(t.Context(), "GET", turns+"/k/events", nil, "X-User", "ada")); s.text != "200" {
		t.Errorf("%+v", s)
	}
}

// A preview shows what a turn would have been, and stores nothing.
func TestPreview(t *testing.T) {
	b := newBench(t, &writer{pieces: []string{"200"}}, conversation.NewMemory(), nil)
	b.get("POST", turns, message{"text": "What is the deposit?", "key": "k1"}, nil)
	b.get("POST", turns, message{"text": "Cargo"}, nil)
	for _, c := range []struct {
		turn, body string
		want       conversation.Kind
		question   string
	}{
		{"k1", `{}`, conversation.KindClarification, "What is the deposit?"},
		{"k1", `{"post_threshold": 0.9}`, conversation.KindAnswer, "What is the deposit?"},
		{"k1", `{"post_threshold": 0.8}`, conversation.KindClarification, "What is the deposit?"},
		{"1", `{"pre_threshold": 2, "post_threshold": 2}`, conversation.KindAnswer, "What is the deposit?"},
		{"2", `{"post_threshold": 0}`, conversation.KindAnswer, "What is the deposit for Cargo?"},
	} {
		var r pipeline.Record
		if resp := b.get("POST", turns+"/"+c.turn+"/preview", c.body, &r); resp.StatusCode != 200 || r.Kind != c.want || r.Question != c.question {
			t.Errorf("turn %s with %s: %s, %s about %q; want %s about %q", c.turn, c.body, resp.Status, r.Kind, r.Question, c.want, c.question)
		}
	}
	if n := len(b.stored()); n != 2 {
		t.Errorf("%d turns are stored", n)
	}
	var p server.Problem
	for _, c := range []struct {
		turn, body string
		status     int
	}{{"9", `{}`, 404}, {"k9", `{}`, 404}, {"k1", `{"post_threshold": 70}`, 422}, {"k1", `{"post": 0.7}`, 422}} {
		if r := b.get("POST", turns+"/"+c.turn+"/preview", c.body, &p); r.StatusCode != c.status {
			t.Errorf("turn %s with %s: %s", c.turn, c.body, r.Status)
		}
	}
}

// The description is OpenAPI 3.1 and names every operation.
func TestDescription(t *testing.T) {
	b := newBench(t, &writer{}, conversation.NewMemory(), nil)
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Responses   map[string]json.RawMessage
		}
	}
	b.get("GET", "/openapi.json", nil, &d)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %s", d.OpenAPI)
	}
	for path, methods := range map[string]string{
		"/api/conversations":                                     "get",
		"/api/conversations/{conversation}":                      "get patch delete",
		"/api/conversations/{conversation}/export":               "get",
		"/api/conversations/{conversation}/turns":                "post",
		"/api/conversations/{conversation}/turns/{turn}":         "delete",
		"/api/conversations/{conversation}/turns/{turn}/events":  "get",
		"/api/conversations/{conversation}/turns/{turn}/preview": "post",
	} {
		for method := range strings.FieldsSeq(methods) {
			o, ok := d.Paths[path][method]
			if !ok || o.OperationID == "" || !strings.Contains(string(o.Responses["default"]), "application/problem+json") {
				t.Errorf("%s %s: %+v", method, path, o)
			}
		}
	}
}
