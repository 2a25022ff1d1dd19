package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server/internal/fakes"
	"github.com/askback/askback/server/mcp"
)

// The two ages of the protocol: with sessions, and with requests that stand alone.
const (
	sessions = "2025-11-25"
	alone    = "2026-07-28"
)

// bench is a server of fakes.
type bench struct {
	*mcp.Server
	store  conversation.Store
	quoter *fakes.Quoter
}

func newBench(t *testing.T, o mcp.Options) *bench {
	t.Helper()
	return newBenchOver(t, conversation.NewMemory(), o)
}

func newBenchOver(t *testing.T, store conversation.Store, o mcp.Options) *bench {
	t.Helper()
	b := &bench{store: store, quoter: &fakes.Quoter{}}
	p, err := fakes.Pipeline(b.store, b.quoter)
	if err != nil {
		t.Fatal(err)
	}
	if o.Backend == nil {
		o.Backend = func(context.Context) (mcp.Backend, error) {
			return mcp.Backend{Pipeline: p, Retriever: fakes.Shelf{}}, nil
		}
	}
	o.Log = slog.New(slog.DiscardHandler)
	b.Server = mcp.New(o)
	return b
}

// user plays the person at a client: each answer is used once.
type user struct {
	mu      sync.Mutex
	answers []sdk.ElicitResult
	forms   []sdk.ElicitParams
}

func (u *user) elicit(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forms = append(u.forms, *r.Params)
	if len(u.answers) == 0 {
		return nil, errors.New("the user did not expect to be asked")
	}
	a := u.answers[0]
	u.answers = u.answers[1:]
	return &a, nil
}

func accept(fields map[string]any) sdk.ElicitResult {
	return sdk.ElicitResult{Action: "accept", Content: fields}
}

// transports are the ways to reach a server.
var transports = map[string]func(*testing.T, *bench) sdk.Transport{
	"memory": func(t *testing.T, b *bench) sdk.Transport {
		client, server := sdk.NewInMemoryTransports()
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { ended <- b.Run(ctx, server) }()
		t.Cleanup(func() {
			cancel()
			<-ended
		})
		return client
	},
	"http": func(t *testing.T, b *bench) sdk.Transport {
		s := httptest.NewServer(b.HTTP())
		t.Cleanup(s.Close)
		return &sdk.StreamableClientTransport{Endpoint: s.URL}
	},
}

// connect connects a client; u is nil for one that cannot ask its user.
func connect(t *testing.T, transport sdk.Transport, version string, u *user, progress func(string)) *sdk.ClientSession {
	t.Helper()
	o := &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}
	if u != nil {
		o.ElicitationHandler = u.elicit
	}
	if progress != nil {
		o.ProgressNotificationHandler = func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress(r.Params.Message) }
	}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if got := c.InitializeResult(); got != nil && got.ProtocolVersion != version {
		t.Fatalf("the client speaks %s, want %s", got.ProtocolVersion, version)
	}
	return c
}

// call calls a tool and decodes its structured content.
func call[T any](t *testing.T, c *sdk.ClientSession, tool string, arguments map[string]any) (out T, text string, failed bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	for _, content := range r.Content {
		text += content.(*sdk.TextContent).Text + "\n"
	}
	if r.IsError {
		return out, text, true
	}
	data, _ := json.Marshal(r.StructuredContent)
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out, text, false
}

// everywhere runs a test over both transports and with both ages of the protocol.
func everywhere(t *testing.T, test func(t *testing.T, b *bench, connect func(*user) *sdk.ClientSession)) {
	for name, transport := range transports {
		for _, version := range []string{sessions, alone} {
			t.Run(name+" "+version, func(t *testing.T) {
				b := newBench(t, mcp.Options{Version: "1.2.3", About: "renting bikes"})
				test(t, b, func(u *user) *sdk.ClientSession { return connect(t, transport(t, b), version, u, nil) })
			})
		}
	}
}

const deposit = "What is the deposit?"

// TestTools lists what there is.
func TestTools(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench, connect func(*user) *sdk.ClientSession) {
		c := connect(nil)
		tools, err := c.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 2 {
			t.Fatalf("%+v, %v", tools, err)
		}
		for i, name := range []string{"ask", "search"} {
			tool := tools.Tools[i]
			if tool.Name != name || !strings.Contains(tool.Description, "never instructions") || !strings.Contains(tool.Description, "renting bikes") ||
				tool.OutputSchema == nil || tool.Annotations.ReadOnlyHint != (name == "search") {
				t.Errorf("%+v", tool)
			}
		}
	})
}

// TestData asks with a client that cannot ask its user: a clarification is the
// result, and the next call replies to it.
func TestData(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench, connect func(*user) *sdk.ClientSession) {
		c := connect(nil)
		asked, text, failed := call[mcp.Result](t, c, "ask", map[string]any{"question": deposit})
		if failed || asked.Kind != conversation.KindClarification || asked.Text != "City or Cargo?" || len(asked.Options) != 2 || asked.Options[1].Passages[0] != "cargo" ||
			asked.Clarification != "c1" || asked.Gate != "post" || asked.Conversation == "" {
			t.Fatalf("%+v, %s", asked, text)
		}
		for _, want := range []string{"2. Cargo — Deposit: Cargo", "Conversation: " + asked.Conversation, "call ask with this conversation"} {
			if !strings.Contains(text, want) {
				t.Errorf("the text does not say %q:\n%s", want, text)
			}
		}
		answer, text, _ := call[mcp.Result](t, c, "ask", map[string]any{"question": "the second", "conversation": asked.Conversation})
		if answer.Kind != conversation.KindAnswer || answer.Text != "The deposit is 450. [1]" || answer.Turn != 2 || answer.Citations[0].Quote != "The deposit is 450." || !strings.Contains(text, "Sources:\n- [1] Deposit: Cargo (rental.md#cargo)") {
			t.Errorf("%+v, %s", answer, text)
		}
		if other, _, _ := call[mcp.Result](t, c, "ask", map[string]any{"question": "Who painted the office?"}); other.Kind != conversation.KindNoAnswer || other.Conversation == asked.Conversation || other.Turn != 1 {
			t.Errorf("a call without a conversation: %+v", other)
		}
		if _, text, failed := call[mcp.Result](t, c, "ask", map[string]any{"question": "  "}); !failed || !strings.Contains(text, "empty") {
			t.Errorf("an empty question: %s", text)
		}
	})
}

// TestElicitation asks with a client that can ask its user, who says each thing that
// one can say to a form.
func TestElicitation(t *testing.T) {
	for name, c := range map[string]struct {
		question  string
		answers   []sdk.ElicitResult
		kind      conversation.Kind
		text      string // the result's text contains it
		turn      int
		forms     int
		remaining bool // the clarification waits
	}{
		"an option":            {deposit, []sdk.ElicitResult{accept(map[string]any{"option": "Cargo"})}, conversation.KindAnswer, "450", 2, 1, false},
		"own words":            {deposit, []sdk.ElicitResult{accept(map[string]any{"words": "it is the City"})}, conversation.KindAnswer, "200", 2, 1, false},
		"both":                 {deposit, []sdk.ElicitResult{accept(map[string]any{"option": "Cargo", "words": "for three days"})}, conversation.KindAnswer, "450", 2, 1, false},
		"an empty form":        {deposit, []sdk.ElicitResult{accept(map[string]any{"words": " "})}, conversation.KindAnswer, "Assuming City", 2, 1, false},
		"decline":              {deposit, []sdk.ElicitResult{{Action: "decline"}}, conversation.KindAnswer, "Assuming City", 2, 1, false},
		"cancel":               {deposit, []sdk.ElicitResult{{Action: "cancel"}}, conversation.KindClarification, "City or Cargo?", 1, 1, true},
		"never mind":           {deposit, []sdk.ElicitResult{accept(map[string]any{"words": "never mind"})}, conversation.KindAnswer, "", 2, 1, false},
		"both gates":           {"How much is it?", []sdk.ElicitResult{accept(map[string]any{"words": "the deposit"}), accept(map[string]any{"option": "Cargo"})}, conversation.KindAnswer, "450", 3, 2, false},
		"explain, then choose": {deposit, []sdk.ElicitResult{accept(map[string]any{"words": "what do you mean by Cargo?"}), accept(map[string]any{"option": "City"})}, conversation.KindAnswer, "200", 3, 2, false},
		"nothing to ask":       {"When are you open?", nil, conversation.KindAnswer, "9 to 17", 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, b *bench, connect func(*user) *sdk.ClientSession) {
				u := &user{answers: c.answers}
				got, text, failed := call[mcp.Result](t, connect(u), "ask", map[string]any{"question": c.question})
				if failed || got.Kind != c.kind || !strings.Contains(got.Text, c.text) || got.Turn != c.turn || len(u.forms) != c.forms {
					t.Fatalf("%d forms, %+v, %s", len(u.forms), got, text)
				}
				kept, err := b.store.Load(t.Context(), got.Conversation, conversation.All)
				if err != nil || len(kept.Turns) != c.turn || (kept.Pending != nil) != c.remaining {
					t.Errorf("kept %+v, %v", kept, err)
				}
				if c.forms == 1 {
					schema, _ := json.Marshal(u.forms[0].RequestedSchema)
					if u.forms[0].Message != "City or Cargo?" || !strings.Contains(string(schema), `"enum":["City","Cargo"]`) {
						t.Errorf("the form: %q %s", u.forms[0].Message, schema)
					}
				}
			})
		})
	}
}

// TestElicitationFails has a client whose form cannot be shown after all.
func TestElicitationFails(t *testing.T) {
	b := newBench(t, mcp.Options{})
	u := &user{}
	got, text, failed := call[mcp.Result](t, connect(t, transports["memory"](t, b), sessions, u, nil), "ask", map[string]any{"question": deposit})
	if failed || got.Kind != conversation.KindClarification || len(u.forms) != 1 {
		t.Errorf("%+v %s", got, text)
	}
}

// TestEndlessExplanation asks again and again what is meant: a call ends some time.
func TestEndlessExplanation(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench, connect func(*user) *sdk.ClientSession) {
		u := &user{}
		for range 50 {
			u.answers = append(u.answers, accept(map[string]any{"words": "what do you mean by Cargo?"}))
		}
		got, text, failed := call[mcp.Result](t, connect(u), "ask", map[string]any{"question": deposit})
		if failed || got.Kind != conversation.KindClarification || len(u.forms) != 6 {
			t.Errorf("%d forms, %+v %s", len(u.forms), got, text)
		}
	})
}

// TestStateIsChecked sends a state that the server never gave.
func TestStateIsChecked(t *testing.T) {
	b := newBench(t, mcp.Options{})
	c := connect(t, transports["http"](t, b), alone, &user{}, nil)
	for state, want := range map[string]string{
		"nonsense":    "send it unchanged",
		`{"round":1}`: "send it unchanged",
		`{"conversation":"nobody's","clarification":"c1"}`: "waits no more",
	} {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"question": deposit}, RequestState: state,
			InputResponses: sdk.InputResponseMap{"reply": &sdk.ElicitResult{Action: "decline"}}})
		if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, want) {
			t.Errorf("%s: %+v, %v", state, r, err)
		}
	}
}

func TestSearch(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench, connect func(*user) *sdk.ClientSession) {
		c := connect(nil)
		got, text, _ := call[mcp.Passages](t, c, "search", map[string]any{"query": "deposit"})
		if len(got.Passages) != 2 || got.Passages[0].ID != "city" || got.Passages[0].Document != "rental.md" || !strings.Contains(text, "[2] Deposit: Cargo (rental.md#cargo)\n\nThe deposit is 450.") {
			t.Errorf("%+v %s", got, text)
		}
		if got, _, _ := call[mcp.Passages](t, c, "search", map[string]any{"query": "deposit", "limit": 1}); len(got.Passages) != 1 {
			t.Errorf("%+v", got)
		}
		if got, text, failed := call[mcp.Passages](t, c, "search", map[string]any{"query": "nothing"}); failed || len(got.Passages) != 0 || !strings.Contains(text, "found: 0") {
			t.Errorf("%+v %s", got, text)
		}
		for _, arguments := range []map[string]any{{"query": " "}, {"query": "x", "limit": 51}, {"query": "x", "limit": -1}, {"query": strings.Repeat("x", 40<<10)}, {}, {"query": "x", "lmit": 1}} {
			if _, text, failed := call[mcp.Passages](t, c, "search", arguments); !failed {
				t.Errorf("%.60v: %s", arguments, text)
			}
		}
	})
}

// TestNotReady asks while nothing is served yet.
func TestNotReady(t *testing.T) {
	b := newBench(t, mcp.Options{Backend: func(context.Context) (mcp.Backend, error) {
		return mcp.Backend{}, errors.New("Qdrant: it is just starting")
	}})
	c := connect(t, transports["http"](t, b), alone, nil, nil)
	for _, tool := range []string{"ask", "search"} {
		if _, text, failed := call[mcp.Result](t, c, tool, map[string]any{map[string]string{"ask": "question", "search": "query"}[tool]: "deposit"}); !failed || !strings.Contains(text, "just starting") {
			t.Errorf("%s: %s", tool, text)
		}
	}
}

// TestCancelled lets a client give up a call: the turn stops.
func TestCancelled(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench, connect func(*user) *sdk.ClientSession) {
		writing, stopped := make(chan bool), make(chan error, 1)
		b.quoter.Between = func(ctx context.Context) error {
			close(writing)
			<-ctx.Done()
			stopped <- ctx.Err()
			return ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-writing
			cancel()
		}()
		if _, err := connect(nil).CallTool(ctx, &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"question": "When are you open?"}}); err == nil {
			t.Error("a cancelled call ended well")
		}
		select {
		case <-stopped:
		case <-time.After(10 * time.Second):
			t.Error("the turn goes on after its client gave up")
		}
	})
}

// TestProgress tells a client that wants to know.
func TestProgress(t *testing.T) {
	b := newBench(t, mcp.Options{})
	var mu sync.Mutex
	var told []string
	c := connect(t, transports["http"](t, b), sessions, nil, func(what string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, what)
	})
	params := &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"question": "When are you open?"}}
	params.SetProgressToken("p")
	if _, err := c.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	const want = "understood as: When are you open?; found 1 passages; writing the answer"
	got := ""
	for range 1000 { // what is told may come after the result
		mu.Lock()
		got = strings.Join(told, "; ")
		mu.Unlock()
		if got == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("told %q, want %q", got, want)
}

// named sends each request as a user.
type named string

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-User", string(n))
	return http.DefaultTransport.RoundTrip(r)
}

// TestUsers keeps users apart: conversations and sessions are each one's own.
func TestUsers(t *testing.T) {
	for _, version := range []string{sessions, alone} {
		b := newBench(t, mcp.Options{User: func(r *http.Request) string { return r.Header.Get("X-User") }})
		s := httptest.NewServer(b.HTTP())
		t.Cleanup(s.Close)
		as := func(who string) *sdk.ClientSession {
			return connect(t, &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: named(who)}}, version, nil, nil)
		}
		ada, eve := as("ada"), as("eve")
		asked, _, _ := call[mcp.Result](t, ada, "ask", map[string]any{"question": deposit})
		if _, text, failed := call[mcp.Result](t, eve, "ask", map[string]any{"question": "Cargo", "conversation": asked.Conversation}); !failed || !strings.Contains(text, "another user") {
			t.Errorf("%s: eve replies in ada's conversation: %s", version, text)
		}
		if version == alone {
			continue
		}
		r, _ := http.NewRequest("POST", s.URL, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Cargo","conversation":%q}}}`, asked.Conversation)))
		for name, value := range map[string]string{"X-User": "eve", "Mcp-Session-Id": ada.ID(), "Mcp-Protocol-Version": sessions, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("eve uses ada's session: %s", resp.Status)
		}
	}
}
