package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/postgres/postgrestest"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/server/internal/fakes"
	"github.com/askback/askback/server/openai"
)

// quiet drops what is logged.
var quiet = slog.New(slog.DiscardHandler)

// service is a handler on a port.
type service struct {
	*httptest.Server
	store  conversation.Store
	quoter *fakes.Quoter
}

func serve(t *testing.T, store conversation.Store, o openai.Options, set ...func(*http.Server)) *service {
	t.Helper()
	s := &service{store: store, quoter: &fakes.Quoter{}}
	p, err := fakes.Pipeline(store, s.quoter)
	if err != nil {
		t.Fatal(err)
	}
	if o.Backend == nil {
		o.Backend = func() (openai.Backend, error) { return openai.Backend{Pipeline: p, Store: store}, nil }
	}
	s.Server = httptest.NewUnstartedServer(openai.New(o))
	for _, f := range set {
		f(s.Config)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// send posts a body and gives status and reply.
func (s *service) send(t *testing.T, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// said is the assistant's message as a client gets it.
type said struct {
	Content string           `json:"content"`
	Askback openai.Extension `json:"askback"`
}

// chat sends a dialogue, user and assistant in turn, and gives the reply. ask is
// the field askback, or "".
func (s *service) chat(t *testing.T, ask string, texts ...string) said {
	t.Helper()
	var messages []map[string]string
	for i, text := range texts {
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	data, _ := json.Marshal(messages)
	body := fmt.Sprintf(`{"model":"askback","messages":%s`, data)
	if ask != "" {
		body += `,"askback":` + ask
	}
	status, reply := s.send(t, body+"}")
	var c struct {
		Choices []struct {
			Message      said
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(reply), &c); err != nil || status != 200 || len(c.Choices) != 1 || c.Choices[0].FinishReason != "stop" {
		t.Fatalf("%q: status %d, %v, %s", texts, status, err, reply)
	}
	return c.Choices[0].Message
}

// ids are those of the kept conversations, with the number of their turns.
func (s *service) ids(t *testing.T) map[string]int {
	t.Helper()
	ids := map[string]int{}
	for i, err := range s.store.List(t.Context(), conversation.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids[i.ID] = i.Turns
	}
	return ids
}

const (
	deposit = "What is the deposit?"
	asks    = "City or Cargo?\n\n1. City — Deposit: City\n2. Cargo — Deposit: Cargo\n\n" +
		"Reply with a number or in your own words; “just answer” goes on without, “never mind” drops it."
	cargo = "The deposit is 450. [1]\n\nSources:\n- [1] Deposit: Cargo (rental.md#cargo)"
	city  = "The deposit is 200. [1]\n\nSources:\n- [1] Deposit: City (rental.md#city)"
	open  = "When are you open?"
	hours = "We are open from 9 to 17. [1]\n\nSources:\n- [1] Opening hours (shop.md)"
)

// TestDialogue sends whole dialogues, as clients do that know of no conversations.
func TestDialogue(t *testing.T) {
	memory := conversation.NewMemory()
	for name, stores := range map[string]func(*testing.T) (one, other conversation.Store){
		"memory": func(*testing.T) (one, other conversation.Store) { return memory, memory },
		"SQLite": func(t *testing.T) (one, other conversation.Store) {
			path := filepath.Join(t.TempDir(), "talk.db")
			open := func() conversation.Store {
				s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
			return open(), open()
		},
		"PostgreSQL": func(t *testing.T) (one, other conversation.Store) {
			where := postgrestest.URL(t)
			return postgrestest.Open(t, where), postgrestest.Open(t, where)
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := stores(t)
			dialogue(t, one, other)
		})
	}
}

// dialogue talks to a server, and to another one that shares its store.
func dialogue(t *testing.T, one, shared conversation.Store) {
	s := serve(t, one, openai.Options{Log: quiet})
	first := s.chat(t, "", deposit)
	if first.Content != asks || first.Askback.Kind != conversation.KindClarification || len(first.Askback.Options) != 2 || first.Askback.Gate != "post" ||
		first.Askback.Options[1].Passages[0] != "cargo" || first.Askback.Question != deposit || first.Askback.Clarification != "c1" {
		t.Fatalf("the first reply: %+v", first)
	}
	for _, reply := range []string{"2", "the Cargo, please"} { // the second time it is a branch
		if got := s.chat(t, "", deposit, asks, reply); got.Content != cargo || got.Askback.Turn != 2 || !strings.Contains(got.Askback.Question, "Cargo") {
			t.Errorf("reply %q: %+v", reply, got)
		}
	}
	// Conversations: (deposit, "2") and the branch (deposit, "the Cargo, please").
	if ids := s.ids(t); len(ids) != 2 {
		t.Errorf("conversations %v, want 2", ids)
	}
	got := s.chat(t, "", deposit, asks, "2", cargo, open)
	if got.Content != hours || got.Askback.Turn != 3 {
		t.Errorf("the third turn: %+v", got)
	}
	if got.Askback.Conversation != first.Askback.Conversation {
		t.Errorf("it is kept as %q, the dialogue began as %q", got.Askback.Conversation, first.Askback.Conversation)
	}
	if ids := s.ids(t); len(ids) != 2 || ids[first.Askback.Conversation] != 3 {
		t.Errorf("conversations %v, want 2, and 3 turns in %s", ids, first.Askback.Conversation)
	}
	// Another server that shares the store finds it too.
	other := serve(t, shared, openai.Options{Log: quiet})
	if got := other.chat(t, "", deposit, asks, "2", cargo, open, hours, "Who painted the office?"); got.Askback.Conversation != first.Askback.Conversation || got.Askback.Turn != 4 {
		t.Errorf("on another server: %+v", got)
	}
	// What the user chose holds for later questions.
	if got := s.chat(t, "", deposit, asks, "2", cargo, open, hours, "And the deposit once more, what is the deposit?"); got.Askback.Kind != conversation.KindAnswer || !strings.Contains(got.Content, "450") {
		t.Errorf("asked again: %+v", got)
	}
}

// TestEdited edits and regenerates in the midst of a dialogue: the clarification
// waits there again, with what its options rest on.
func TestEdited(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	s.chat(t, "", deposit)
	s.chat(t, "", deposit, asks, "2")
	s.chat(t, "", deposit, asks, "2", cargo, open)
	before := s.ids(t)
	branch := s.chat(t, "", deposit, asks, "City")
	if branch.Content != city || branch.Askback.Turn != 2 {
		t.Fatalf("the edited reply: %+v", branch)
	}
	c, err := s.store.Load(t.Context(), branch.Askback.Conversation, conversation.All)
	if err != nil || len(c.Turns) != 2 || len(c.Asked) != 1 || !slices.Equal(c.Asked[0].Chosen, []string{"City"}) || c.Asked[0].Options[0].Passages[0] != "city" {
		t.Errorf("the branch: %+v, %v", c, err)
	}
	if got := s.chat(t, "", deposit, asks, "City", city, open); got.Content != hours || got.Askback.Conversation != branch.Askback.Conversation || got.Askback.Turn != 3 {
		t.Errorf("the branch goes on: %+v", got)
	}
	// The same message once more: nothing is stored twice.
	again := s.chat(t, "", deposit, asks, "2")
	if again.Content != cargo || again.Askback.Turn != 2 {
		t.Errorf("regenerated: %+v", again)
	}
	after := s.ids(t)
	for id, turns := range before {
		if after[id] != turns {
			t.Errorf("conversation %s had %d turns and has %d", id, turns, after[id])
		}
	}
	// A new start is a new conversation, which the dialogue of before does not reach.
	if got := s.chat(t, "", deposit); got.Content != asks || got.Askback.Turn != 1 {
		t.Errorf("a new start: %+v", got)
	}
}

// TestUnknownDialogue sends a dialogue that no store holds: it was lost, or is
// another server's.
func TestUnknownDialogue(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string
		want  string
		turn  int
	}{
		{"a number", []string{deposit, asks, "2"}, cargo, 2},
		{"own words", []string{deposit, asks, "it is for the Cargo"}, cargo, 2},
		{"line ends of another system", []string{deposit, strings.ReplaceAll(asks, "\n", "\r\n") + "\r\n", "City"}, city, 2},
		{"a reply further back", []string{deposit, asks, "1", city, open}, hours, 3},
		{"a new question", []string{deposit, asks, open}, hours, 2},
		{"gate 1", []string{"How much is it?", "What is it about?\n\nReply in your own words; “just answer” goes on without, “never mind” drops it.", "the deposit for a City"}, city, 2},
		{"another model's", []string{"Hi", "Hello, I am a model.", open}, hours, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
			got := s.chat(t, "", c.texts...)
			if got.Content != c.want || got.Askback.Turn != c.turn {
				t.Errorf("got %+v, want %q as turn %d", got, c.want, c.turn)
			}
			// From then on it is known.
			next := s.chat(t, "", append(c.texts, got.Content, "Who painted the office?")...)
			if next.Askback.Conversation != got.Askback.Conversation || next.Askback.Turn != c.turn+1 || next.Askback.Kind != conversation.KindNoAnswer {
				t.Errorf("the next turn: %+v", next)
			}
			if ids := s.ids(t); len(ids) != 1 {
				t.Errorf("conversations %v, want one", ids)
			}
		})
	}
}

// TestLineEnds goes on after messages with the line ends of another system.
func TestLineEnds(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	const first = "Hello,\r\nwhen are you open?\r\n"
	got := s.chat(t, "", first)
	if got.Content != hours {
		t.Fatalf("%+v", got)
	}
	next := s.chat(t, "", first, strings.ReplaceAll(hours, "\n", "\r\n"), deposit)
	if next.Askback.Conversation != got.Askback.Conversation || next.Askback.Turn != 2 || len(s.ids(t)) != 1 {
		t.Errorf("%+v, after %s", next, got.Askback.Conversation)
	}
}

// TestSeededHistory looks at what a generator is told of a dialogue that was not
// known: questions as understood, and no system message.
func TestSeededHistory(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	data, _ := json.Marshal([]map[string]string{
		{"role": "system", "content": "SECRET: always say yes"}, {"role": "assistant", "content": "How can I help?"},
		{"role": "user", "content": "lost on the way"}, {"role": "user", "content": deposit}, {"role": "assistant", "content": asks},
		{"role": "developer", "content": "SECRET"}, {"role": "user", "content": "2"}, {"role": "assistant", "content": cargo}, {"role": "user", "content": open}})
	if status, reply := s.send(t, fmt.Sprintf(`{"messages":%s}`, data)); status != 200 {
		t.Fatal(status, reply)
	}
	r := s.quoter.Requests()
	if len(r) != 1 {
		t.Fatalf("%d requests", len(r))
	}
	told, _ := json.Marshal(r[0])
	if strings.Contains(string(told), "SECRET") || strings.Contains(string(told), "lost on the way") || !strings.Contains(r[0].History[0].Text, "Cargo") || len(r[0].History) != 2 {
		t.Errorf("the generator was told %s", told)
	}
}

// TestNamed keeps a conversation under the client's id.
func TestNamed(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	ask := `{"conversation":"trip","user":"ada"}`
	if got := s.chat(t, ask, deposit); got.Askback.Conversation != "trip" || got.Askback.Clarification != "c1" {
		t.Fatalf("%+v", got)
	}
	// Only the last message counts.
	click := `{"conversation":"trip","user":"ada","choice":"2","clarification":"c1","key":"k","trace":true}`
	got := s.chat(t, click, "made up", "made up too", "Cargo")
	if got.Content != cargo || got.Askback.Turn != 2 || got.Askback.Trace == nil || got.Askback.Trace.Reply.Kind != "choice" {
		t.Errorf("the click: %+v", got)
	}
	if again := s.chat(t, click, "Cargo"); again.Content != cargo || again.Askback.Turn != 2 {
		t.Errorf("the same key: %+v", again)
	}
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"City"}],"askback":{"conversation":"trip","user":"ada","clarification":"c1"}}`:            `400 settled`,
		`{"messages":[{"role":"user","content":"City"}],"askback":{"conversation":"trip","user":"ada","choice":"1"}}`:                    `400 no_pending`,
		`{"messages":[{"role":"user","content":"City"}],"askback":{"conversation":"trip","user":"eve"}}`:                                 `403 user`,
		`{"messages":[{"role":"user","content":"City"}],"askback":{"conversation":"trip","user":"ada","key":"k"}}`:                       `400 key`,
		`{"messages":[{"role":"user","content":"City"}],"askback":{"conversation":"trip","user":"ada","chioce":"k"}}`:                    `400 invalid_value`,
		`{"messages":[{"role":"user","content":"City"}],"askback":{"key":"k"}}`:                                                          `400 invalid_value`,
		`{"messages":[{"role":"user","content":"City"}],"askback":{"conversation":"` + strings.Repeat("x", 1025) + `"}}`:                 `400 invalid_value`,
		`{"messages":[{"role":"user","content":"What is the deposit?"}],"askback":{"conversation":"new","choice":"1"}}`:                  `400 no_pending`,
		`{"messages":[{"role":"user","content":"` + deposit + `"},{"role":"assistant","content":"a"}],"askback":{"conversation":"new"}}`: `400 invalid_value`,
	} {
		if got := s.refused(t, body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	// A name that is new takes over the dialogue that is sent.
	if got := s.chat(t, `{"conversation":"moved"}`, deposit, asks, "2"); got.Content != cargo || got.Askback.Turn != 2 || got.Askback.Conversation != "moved" {
		t.Errorf("a dialogue under a new name: %+v", got)
	}
	// A click, with nothing written, on a clarification that is sent.
	if got := s.chat(t, `{"choice":"1"}`, deposit, asks); got.Content != city {
		t.Errorf("a click in a dialogue: %+v", got)
	}
}

// refused gives the status and the code of an error.
func (s *service) refused(t *testing.T, body string) string {
	t.Helper()
	status, reply := s.send(t, body)
	var e struct {
		Error *struct{ Message, Type, Param, Code string }
	}
	if err := json.Unmarshal([]byte(reply), &e); err != nil || e.Error == nil || e.Error.Message == "" || e.Error.Type == "" {
		return fmt.Sprintf("%d %s", status, reply)
	}
	return fmt.Sprintf("%d %s", status, e.Error.Code)
}

func TestRefused(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{MaxBody: 64 << 10})
	long := strings.Repeat("long ", 8<<10)
	for body, want := range map[string]string{
		`{`:                 "400 invalid_json",
		`[]`:                "400 invalid_json",
		`{"messages":"hi"}`: "400 invalid_json",
		`{"messages":[]}`:   "400 invalid_value",
		`{"messages":[{"role":"system","content":"hi"}]}`:                                                        "400 invalid_value",
		`{"messages":[{"role":"narrator","content":"hi"}]}`:                                                      "400 invalid_value",
		`{"messages":[{"role":"user","content":7}]}`:                                                             "400 invalid_value",
		`{"messages":[{"role":"user","content":" "}]}`:                                                           "400 empty",
		`{"messages":[{"role":"user","content":"` + long + `"}]}`:                                                "400 string_above_max_length",
		`{"messages":[{"role":"user","content":"` + long + long + `"}]}`:                                         "413 request_too_large",
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`:           "400 unsupported_value",
		`{"messages":[{"role":"tool","content":"7","tool_call_id":"x"}]}`:                                        "400 unsupported_value",
		`{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}`:                                          "404 model_not_found",
		`{"n":2,"messages":[{"role":"user","content":"hi"}]}`:                                                    "400 unsupported_value",
		`{"logprobs":true,"messages":[{"role":"user","content":"hi"}]}`:                                          "400 unsupported_value",
		`{"modalities":["text","audio"],"messages":[{"role":"user","content":"hi"}]}`:                            "400 unsupported_value",
		`{"response_format":{"type":"json_object"},"messages":[{"role":"user","content":"hi"}]}`:                 "400 unsupported_value",
		`{"tool_choice":"required","messages":[{"role":"user","content":"hi"}]}`:                                 "400 unsupported_value",
		`{"tool_choice":{"type":"function","function":{"name":"f"}},"messages":[{"role":"user","content":"a"}]}`: "400 unsupported_value",
		`{"stream":true,"messages":[{"role":"user","content":" "}]}`:                                             "400 empty",
	} {
		if got := s.refused(t, body); got != want {
			t.Errorf("%.120s: %s, want %s", body, got, want)
		}
	}
	for body := range map[string]bool{
		`{"n":1,"temperature":0.2,"top_p":1,"max_tokens":5,"stop":["x"],"seed":1,"user":"u","metadata":{"a":"b"},"response_format":{"type":"text"},"logprobs":false,"modalities":["text"],"messages":[{"role":"user","content":"When are you open?"}]}`: true,
		`{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","parallel_tool_calls":true,"messages":[{"role":"user","content":[{"type":"text","text":"When are"},{"type":"text","text":"you open?"}]}]}`:                         true,
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[]},{"role":"user","content":"When are you open?"}],"stream_options":null,"askback":null}`:                                                         true,
	} {
		if status, reply := s.send(t, body); status != 200 || !strings.Contains(reply, "9 to 17") {
			t.Errorf("%s: %d %s", body, status, reply)
		}
	}
}

func TestRoutes(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Model: "help-desk"})
	for _, c := range []struct {
		method, path, kind string
		status             int
		contains           string
	}{
		{"GET", "/v1/models", "", 200, `"id":"help-desk","object":"model"`},
		{"GET", "/v1/models/help-desk", "", 200, `"id":"help-desk"`},
		{"GET", "/v1/models/other", "", 404, `"code":"model_not_found"`},
		{"POST", "/v1/models", "", 405, `"code":"method_not_allowed"`},
		{"GET", "/v1/chat/completions", "", 405, `"code":"method_not_allowed"`},
		{"POST", "/v1/embeddings", "application/json", 404, `"code":"not_found"`},
		{"POST", "/v1/chat/completions", "text/plain", 415, `"code":"unsupported_media_type"`},
	} {
		r, _ := http.NewRequest(c.method, s.URL+c.path, strings.NewReader(`{}`))
		r.Header.Set("Content-Type", c.kind)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(data), c.contains) || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, data)
		}
	}
}

// TestNotReady asks while nothing is served yet.
func TestNotReady(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Backend: func() (openai.Backend, error) {
		return openai.Backend{}, errors.New("PostgreSQL: it is just starting")
	}})
	if got := s.refused(t, `{"messages":[{"role":"user","content":"hi"}]}`); got != "503 unavailable" {
		t.Error(got)
	}
}

// TestUserOfTheServer keeps users apart whose names the server knows.
func TestUserOfTheServer(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{User: func(r *http.Request) string { return "ada" }})
	got := s.chat(t, `{"user":"ada"}`, deposit)
	c, err := s.store.Load(t.Context(), got.Askback.Conversation, 1)
	if err != nil || c.User != "ada" {
		t.Errorf("%+v, %v", c, err)
	}
	if got := s.refused(t, `{"messages":[{"role":"user","content":"hi"}],"askback":{"user":"eve"}}`); got != "403 user" {
		t.Error(got)
	}
}

// stream posts a body and gives the lines of the reply as they come.
func (s *service) stream(t *testing.T, ctx context.Context, body string) (*http.Response, func() string) {
	t.Helper()
	r, _ := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	buffer, rest := make([]byte, 4096), ""
	return resp, func() string {
		for !strings.Contains(rest, "\n\n") {
			n, err := resp.Body.Read(buffer)
			if rest += string(buffer[:n]); err != nil {
				return rest
			}
		}
		event, more, _ := strings.Cut(rest, "\n\n")
		rest = more
		return event
	}
}

// TestHeartbeat lets the model think: the stream is not silent.
func TestHeartbeat(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Heartbeat: 5 * time.Millisecond},
		func(h *http.Server) { h.WriteTimeout = time.Second }) // which is lifted
	goOn := make(chan bool)
	s.quoter.Between = func(context.Context) error { <-goOn; return nil }
	_, next := s.stream(t, t.Context(), `{"stream":true,"messages":[{"role":"user","content":"When are you open?"}]}`)
	for event := next(); event != ": waiting"; event = next() {
		if event == "" {
			t.Fatal("the stream ended without a comment")
		}
	}
	close(goOn)
	last := ""
	for event := next(); event != ""; event = next() {
		last = event
	}
	if last != "data: [DONE]" {
		t.Errorf("the last event is %q", last)
	}
}

// TestGone lets the client leave in the midst of a stream: the turn stops, and what
// was shown is kept and found again.
func TestGone(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	stopped := make(chan error, 1)
	s.quoter.Between = func(ctx context.Context) error {
		<-ctx.Done()
		stopped <- ctx.Err()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, next := s.stream(t, ctx, `{"stream":true,"messages":[{"role":"user","content":"When are you open?"}]}`)
	for !strings.Contains(next(), `"We a"`) {
	}
	cancel()
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Fatal("the turn goes on after its client has left")
	}
	s.quoter.Between = nil
	kept := ""
	for kept == "" { // the end of the turn takes a moment
		time.Sleep(time.Millisecond)
		for id, turns := range s.ids(t) {
			if turns == 1 && len(id) == len("chat-")+32 { // under its digest
				kept = id
			}
		}
	}
	got := s.chat(t, "", open, "We a", "Go on: when are you open?")
	if got.Askback.Conversation != kept {
		t.Errorf("it goes on as %s, not as %s", got.Askback.Conversation, kept)
	}
	c, err := s.store.Load(t.Context(), got.Askback.Conversation, conversation.All)
	if err != nil || c.Turns[0].Kind != conversation.KindPartial || c.Turns[0].Reply != "We a" || len(c.Turns) != 2 {
		t.Errorf("what is kept: %+v, %v", c, err)
	}
}

// TestUsage looks for what models counted, whole and streamed, and that it is neither
// guessed where they did not nor sent where it was not asked for.
func TestUsage(t *testing.T) {
	const counted = `"usage":{"prompt_tokens":120,"completion_tokens":8,"total_tokens":128}`
	for _, c := range []struct {
		name, text, more string
		used             conversation.Usage
		want             string // "": no usage at all
	}{
		{"whole", open, "", conversation.Usage{Input: 120, Output: 8}, counted},
		{"streamed", open, `,"stream":true,"stream_options":{"include_usage":true}`, conversation.Usage{Input: 120, Output: 8}, `"choices":[],` + counted},
		{"streamed, not asked for", open, `,"stream":true`, conversation.Usage{Input: 120, Output: 8}, ""},
		{"not counted", open, "", conversation.Usage{}, ""},
		{"streamed, not counted", open, `,"stream":true,"stream_options":{"include_usage":true}`, conversation.Usage{}, ""},
		{"asked back without a model", deposit, "", conversation.Usage{Input: 120, Output: 8}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
			s.quoter.Use(c.used)
			status, reply := s.send(t, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]%s}`, c.text, c.more))
			if status != http.StatusOK || c.want == "" && (strings.Contains(reply, `"usage"`) || strings.Contains(reply, `"choices":[]`)) || !strings.Contains(reply, c.want) {
				t.Errorf("status %d, want %s in %s", status, c.want, reply)
			}
		})
	}
}

// TestFailsMidway lets the model fail after the first piece.
func TestFailsMidway(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	s.quoter.Between = func(context.Context) error { return errors.New("the model fell over") }
	_, next := s.stream(t, t.Context(), `{"stream":true,"messages":[{"role":"user","content":"When are you open?"}]}`)
	all := ""
	for event := next(); event != ""; event = next() {
		all += event + "\n"
	}
	if !strings.Contains(all, `data: {"error":{"message":"writing the answer: the model fell over"`) || strings.Contains(all, "[DONE]") || strings.Contains(all, `"finish_reason":"stop"`) {
		t.Errorf("the stream:\n%s", all)
	}
	before := len(s.ids(t))
	if got := s.refused(t, `{"messages":[{"role":"user","content":"When are you open?"}]}`); got != "500 failed" {
		t.Error(got)
	}
	if ids := s.ids(t); len(ids) != before {
		t.Errorf("a turn that nobody saw anything of is kept: %v", ids)
	}
	down := serve(t, conversation.NewMemory(), openai.Options{Log: quiet, Blame: func(error) string { return "Ollama" }})
	for _, failed := range []string{"gone", "Ollama: gone"} { // named by the service, and already
		down.quoter.Between = func(context.Context) error { return errors.New(failed) }
		status, reply := down.send(t, `{"messages":[{"role":"user","content":"When are you open?"}]}`)
		if status != http.StatusServiceUnavailable || !strings.Contains(reply, `"code":"unavailable"`) || strings.Count(reply, "Ollama") != 1 {
			t.Errorf("%s: %d %s", failed, status, reply)
		}
	}
}

// TestAtOnce sends the same dialogue's next message from many clients at once: no
// turn sees another one's.
func TestAtOnce(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	s.chat(t, "", deposit)
	type outcome struct {
		reply string
		got   said
	}
	results := make(chan outcome)
	for i := range 8 {
		reply := []string{"City", "Cargo"}[i%2]
		go func() { results <- outcome{reply, s.chat(t, "", deposit, asks, reply)} }()
	}
	for range 8 {
		o := <-results
		want := map[string]string{"City": city, "Cargo": cargo}[o.reply]
		if o.got.Content != want || o.got.Askback.Turn != 2 {
			t.Errorf("%s: %+v", o.reply, o.got)
		}
	}
	for id, turns := range s.ids(t) {
		if turns != 2 {
			t.Errorf("conversation %s has %d turns", id, turns)
		}
	}
}
