// Package storetest is the suite that every implementation of
// conversation.Store passes.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
)

// Options are what the suite opens a store with; a field that is zero is left to
// the store.
type Options struct {
	Wait  time.Duration // for a running turn to end
	Queue int           // of turns that wait, negative for none
	Lease time.Duration // of a claim whose process died; a store for one process has none
}

// Run runs the suite. open gives a store that holds nothing; the suite closes
// it.
func Run(t *testing.T, open func(t *testing.T, o Options) conversation.Store) {
	for name, test := range map[string]func(*testing.T, conversation.Store){
		"turns are kept whole":            testKept,
		"release leaves all as it was":    testRelease,
		"turns are never rewritten":       testRewritten,
		"a claim is exclusive":            testExclusive,
		"a waiting claim gives up":        testGivesUp,
		"a lost claim commits nothing":    testLost,
		"pending and asked":               testPending,
		"odd ids":                         testIDs,
		"odd texts":                       testTexts,
		"list and delete":                 testList,
		"the caller's copies are its own": testCopies,
		"after close":                     testClosed,
		"the last turns":                  testLast,
		"a message sent twice":            testKey,
		"a turn that was broken off":      testPartial,
		"users":                           testUsers,
		"age":                             testAge,
		"a running turn is seen":          testOpen,
		"titles":                          testTitles,
		"some of a list":                  testLimit,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Wait: time.Minute})
			defer s.Close()
			test(t, s)
		})
	}
	t.Run("a hundred turns at once", func(t *testing.T) {
		s := open(t, Options{Wait: 5 * time.Minute})
		defer s.Close()
		testHundred(t, s)
	})
	t.Run("busy after the wait", func(t *testing.T) {
		s := open(t, Options{Wait: 50 * time.Millisecond})
		defer s.Close()
		testBusy(t, s)
	})
	t.Run("busy at once", func(t *testing.T) {
		s := open(t, Options{Queue: 1})
		defer s.Close()
		testQueue(t, s)
	})
}

// Say commits one turn and gives the conversation after it.
func Say(ctx context.Context, s conversation.Store, id, text string) (*conversation.Conversation, error) {
	claim, err := s.Begin(ctx, conversation.Request{Conversation: id, Text: text})
	if err != nil {
		return nil, err
	}
	defer claim.Release()
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{
		Number: c.Next(), Text: text, Question: text, Kind: conversation.KindAnswer, Reply: "re: " + text,
	})
	return c, claim.Commit(ctx, c)
}

func say(t *testing.T, s conversation.Store, id, text string) *conversation.Conversation {
	t.Helper()
	c, err := Say(t.Context(), s, id, text)
	if err != nil {
		t.Fatalf("saying %.60q in %q: %v", text, id, err)
	}
	return c
}

func load(t *testing.T, s conversation.Store, id string) *conversation.Conversation {
	t.Helper()
	c, err := s.Load(t.Context(), id, conversation.All)
	if err != nil {
		t.Fatalf("loading %q: %v", id, err)
	}
	return c
}

func begin(t *testing.T, s conversation.Store, id string) conversation.Claim {
	t.Helper()
	c, err := s.Begin(t.Context(), conversation.Request{Conversation: id})
	if err != nil {
		t.Fatalf("claiming %q: %v", id, err)
	}
	return c
}

func remove(t *testing.T, s conversation.Store, f conversation.Filter, want int) {
	t.Helper()
	if n, err := s.Delete(t.Context(), f); err != nil || n != want {
		t.Errorf("deleting %+v: %d conversations, %v; want %d", f, n, err, want)
	}
}

// list gives the conversations that a filter leaves.
func list(t *testing.T, s conversation.Store, f conversation.Filter) (all []conversation.Info) {
	t.Helper()
	for i, err := range s.List(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, i)
	}
	return all
}

func ids(t *testing.T, s conversation.Store, f conversation.Filter) string {
	t.Helper()
	var names []string
	for _, i := range list(t, s, f) {
		names = append(names, i.ID)
	}
	return strings.Join(names, " ")
}

// commit adds a turn to what a claim has read and commits it.
func commit(t *testing.T, claim conversation.Claim, turn conversation.Turn) {
	t.Helper()
	c := claim.Conversation()
	c.Turns = append(c.Turns, turn)
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func texts(c *conversation.Conversation) string {
	var s []string
	for _, t := range c.Turns {
		s = append(s, fmt.Sprintf("%d %s", t.Number, t.Text))
	}
	return strings.Join(s, "|")
}

func testKept(t *testing.T, s conversation.Store) {
	if _, err := s.Load(t.Context(), "a", conversation.All); !errors.Is(err, conversation.ErrNotFound) {
		t.Fatalf("loading an unknown conversation: %v, want ErrNotFound", err)
	}
	claim := begin(t, s, "a")
	c := claim.Conversation()
	if c.ID != "a" || len(c.Turns) != 0 || c.Pending != nil {
		t.Fatalf("a new conversation is %+v", c)
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 890, time.FixedZone("east", 3600))
	want := conversation.Turn{
		Number: 1, At: at, Text: "what is it?", Question: "what is the deposit?", Kind: conversation.KindAnswer,
		Reply: "500 EUR <b>", Detail: json.RawMessage(`{"score": 0.5, "tags": ["a<b"]}`),
	}
	c.Turns = append(c.Turns, want)
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Minute)
	say(t, s, "a", "and then?")
	commit(t, begin(t, s, "a"), conversation.Turn{Number: 3, At: at, Text: "at the same time as the first"}) // the number counts
	got := load(t, s, "a")
	if texts(got) != "1 what is it?|2 and then?|3 at the same time as the first" {
		t.Fatalf("turns %s", texts(got))
	}
	one := got.Turns[0]
	if !one.At.Equal(at) || one.At.Location() != time.UTC {
		t.Errorf("time %v, want %v in UTC", one.At, at)
	}
	if one.Question != want.Question || one.Kind != want.Kind || one.Reply != want.Reply {
		t.Errorf("turn %+v, want %+v", one, want)
	}
	var detail struct {
		Score float64
		Tags  []string
	}
	if err := json.Unmarshal(one.Detail, &detail); err != nil || detail.Score != 0.5 || !slices.Equal(detail.Tags, []string{"a<b"}) {
		t.Errorf("detail %s (%v)", one.Detail, err)
	}
	if at := got.Turns[1].At; at.Before(before) || at.After(time.Now().Add(time.Minute)) {
		t.Errorf("a turn without a time got %v", at)
	}
}

func testRelease(t *testing.T, s conversation.Store) {
	claim := begin(t, s, "a")
	claim.Conversation().Turns = append(claim.Conversation().Turns, conversation.Turn{Number: 1, Text: "lost"})
	claim.Release()
	if _, err := s.Load(t.Context(), "a", conversation.All); !errors.Is(err, conversation.ErrNotFound) {
		t.Fatalf("a released claim left a conversation behind: %v", err)
	}
	say(t, s, "a", "one")
	claim = begin(t, s, "a")
	c := claim.Conversation()
	c.Turns[0].Text = "changed"
	c.Pending = &conversation.Pending{ID: "p"}
	claim.Release()
	claim.Release()
	if got := load(t, s, "a"); texts(got) != "1 one" || got.Pending != nil {
		t.Fatalf("after a release: %s, pending %v", texts(got), got.Pending)
	}
	claim = begin(t, s, "a") // Release after Commit does nothing, to the next claim too
	c = claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 2, Text: "two"})
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	next := begin(t, s, "a")
	claim.Release()
	c = next.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 3, Text: "three"})
	if err := next.Commit(t.Context(), c); err != nil {
		t.Fatalf("a release after its commit ended the next claim: %v", err)
	}
}

func testRewritten(t *testing.T, s conversation.Store) {
	say(t, s, "a", "one")
	say(t, s, "a", "two")
	turn := func(n int, text string) conversation.Turn { return conversation.Turn{Number: n, Text: text} }
	for name, change := range map[string]func(*conversation.Conversation){
		"text changed":     func(c *conversation.Conversation) { c.Turns[0].Text = "uno" },
		"reply changed":    func(c *conversation.Conversation) { c.Turns[1].Reply = "" },
		"detail added":     func(c *conversation.Conversation) { c.Turns[1].Detail = json.RawMessage(`1`) },
		"time changed":     func(c *conversation.Conversation) { c.Turns[0].At = c.Turns[0].At.Add(time.Nanosecond) },
		"turn removed":     func(c *conversation.Conversation) { c.Turns = c.Turns[:1] },
		"first removed":    func(c *conversation.Conversation) { c.Turns = c.Turns[1:] },
		"number twice":     func(c *conversation.Conversation) { c.Turns = append(c.Turns, turn(2, "x")) },
		"number left out":  func(c *conversation.Conversation) { c.Turns = append(c.Turns, turn(4, "x")) },
		"number not given": func(c *conversation.Conversation) { c.Turns = append(c.Turns, turn(0, "x")) },
		"another id":       func(c *conversation.Conversation) { c.ID = "b" },
		"detail no JSON": func(c *conversation.Conversation) {
			c.Turns = append(c.Turns, conversation.Turn{Number: 3, Detail: json.RawMessage(`{`)})
		},
	} {
		claim := begin(t, s, "a")
		c := claim.Conversation()
		change(c)
		if err := claim.Commit(t.Context(), c); err == nil {
			t.Errorf("%s: committed", name)
		}
		claim.Release()
		if got := load(t, s, "a"); texts(got) != "1 one|2 two" {
			t.Errorf("%s: left %s", name, texts(got))
		}
	}
	if _, err := s.Load(t.Context(), "b", conversation.All); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("conversation b: %v, want ErrNotFound", err)
	}
	say(t, s, "a", "three") // none of that left a claim behind
}

func testExclusive(t *testing.T, s conversation.Store) {
	claim := begin(t, s, "a")
	defer claim.Release()
	say(t, s, "b", "another conversation is free")
	done := make(chan error, 1)
	go func() {
		_, err := Say(t.Context(), s, "a", "second")
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("two claims on one conversation at once (%v)", err)
	case <-time.After(100 * time.Millisecond):
	}
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 1, Text: "first"})
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := texts(load(t, s, "a")); got != "1 first|2 second" {
		t.Fatalf("turns %s", got)
	}
}

func testBusy(t *testing.T, s conversation.Store) {
	claim := begin(t, s, "a")
	start := time.Now()
	_, err := s.Begin(t.Context(), conversation.Request{Conversation: "a"})
	if !errors.Is(err, conversation.ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting longer than the store waits: %v, want ErrBusy and no context error", err)
	}
	if took := time.Since(start); took < 45*time.Millisecond || took > 3*time.Second {
		t.Errorf("gave up after %v, want about 50 ms", took)
	}
	claim.Release()
	say(t, s, "a", "free again")
}

func testGivesUp(t *testing.T, s conversation.Store) {
	claim := begin(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	_, err := s.Begin(ctx, conversation.Request{Conversation: "a"})
	if !errors.Is(err, conversation.ErrBusy) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while waiting: %v, want ErrBusy and context.Canceled", err)
	}
	claim.Release()
	say(t, s, "a", "free again")

	claim = begin(t, s, "a")
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 2, Text: "too late"})
	if err := claim.Commit(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("committing with a cancelled context: %v, want context.Canceled", err)
	}
	claim.Release()
	if got := texts(load(t, s, "a")); got != "1 free again" {
		t.Errorf("turns %s", got)
	}
}

func testLost(t *testing.T, s conversation.Store) {
	add := func(c *conversation.Conversation) *conversation.Conversation {
		c.Turns = append(c.Turns, conversation.Turn{Number: len(c.Turns) + 1, Text: "late"})
		return c
	}
	claim := begin(t, s, "a")
	claim.Release()
	if err := claim.Commit(t.Context(), add(claim.Conversation())); !errors.Is(err, conversation.ErrLost) {
		t.Errorf("commit after release: %v, want ErrLost", err)
	}
	say(t, s, "a", "one")
	claim = begin(t, s, "a")
	remove(t, s, conversation.Filter{ID: "a"}, 1)
	if err := claim.Commit(t.Context(), add(claim.Conversation())); !errors.Is(err, conversation.ErrLost) {
		t.Errorf("commit after the conversation was deleted: %v, want ErrLost", err)
	}
	claim.Release()
	if _, err := s.Load(t.Context(), "a", conversation.All); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("a deleted conversation came back: %v", err)
	}
	claim = begin(t, s, "a")
	c := add(claim.Conversation())
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := claim.Commit(t.Context(), c); !errors.Is(err, conversation.ErrLost) {
		t.Errorf("a second commit: %v, want ErrLost", err)
	}
}

func testHundred(t *testing.T, s conversation.Store) {
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if _, err := Say(t.Context(), s, "a", fmt.Sprint("message ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c := load(t, s, "a")
	if len(c.Turns) != 100 {
		t.Fatalf("%d turns, want 100", len(c.Turns))
	}
	seen := map[string]bool{}
	for i, turn := range c.Turns {
		if turn.Number != i+1 {
			t.Fatalf("turn %d is numbered %d", i+1, turn.Number)
		}
		seen[turn.Text] = true
	}
	if len(seen) != 100 {
		t.Fatalf("%d different messages, want 100", len(seen))
	}
}

func testPending(t *testing.T, s conversation.Store) {
	p := conversation.Pending{
		ID: "c1", Gate: "post", Question: "what is the deposit?", Text: "Car or van?", Unclear: []string{"it"}, Asked: 1, Chosen: []string{"van"},
		Options: []conversation.Option{{ID: "1", Text: "car", Passages: []string{"p1", "p2"}}, {ID: "2", Text: "van"}},
	}
	claim := begin(t, s, "a")
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 1, Text: "the deposit?", Kind: conversation.KindClarification, Reply: p.Text})
	c.Pending, c.Asked = &p, []conversation.Pending{p}
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(p)
	got := load(t, s, "a")
	if got.Pending == nil || len(got.Asked) != 1 {
		t.Fatalf("pending %v, asked %v", got.Pending, got.Asked)
	}
	for _, q := range []conversation.Pending{*got.Pending, got.Asked[0]} {
		if j, _ := json.Marshal(q); string(j) != string(want) {
			t.Errorf("kept %s\nwant %s", j, want)
		}
	}
	claim = begin(t, s, "a")
	c = claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 2, Text: "van"})
	c.Pending = nil
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := load(t, s, "a"); got.Pending != nil || len(got.Asked) != 1 {
		t.Errorf("after the reply: pending %v, asked %v", got.Pending, got.Asked)
	}
}

func testIDs(t *testing.T, s conversation.Store) {
	good := []string{"a/b", "...", "a b", "' OR 1=1 --", "%", "Ünï", "ünï", "会話", "👍🏽", "A", strings.Repeat("x", 1000)}
	for i, id := range good {
		say(t, s, id, fmt.Sprint("in ", i))
	}
	for i, id := range good {
		if got := texts(load(t, s, id)); got != fmt.Sprint("1 in ", i) {
			t.Errorf("conversation %.40q holds %s", id, got)
		}
	}
	for _, id := range []string{"", ".", "..", "a\x00b", "a\nb", "\t", "a\xffb", strings.Repeat("x", 2000)} {
		if _, err := s.Begin(t.Context(), conversation.Request{Conversation: id}); err == nil {
			t.Errorf("id %.40q was taken", id)
		}
	}
}

func testTexts(t *testing.T, s conversation.Store) {
	for i, c := range []struct{ text, want string }{
		{"", ""},
		{"a\x00b", "a\x00b"},
		{"caf\xe9", "caf\uFFFD"},
		{"\xed\xa0\x80", "\uFFFD"},
		{"line\r\nline\u2028 \U0001F469\u200D\U0001F52C", "line\r\nline\u2028 \U0001F469\u200D\U0001F52C"},
		{strings.Repeat("長い", 200_000), strings.Repeat("長い", 200_000)},
	} {
		id := fmt.Sprint("c", i)
		say(t, s, id, c.text)
		say(t, s, id, "the next turn")
		got := load(t, s, id)
		if len(got.Turns) != 2 || got.Turns[0].Text != c.want || got.Turns[0].Reply != "re: "+c.want {
			t.Errorf("text %.40q was kept as %.40q", c.text, got.Turns[0].Text)
		}
	}
}

func testList(t *testing.T, s conversation.Store) {
	list := func() string { return ids(t, s, conversation.Filter{}) }
	if got := list(); got != "" {
		t.Fatalf("a new store lists %q", got)
	}
	for _, id := range []string{"a", "b", "c", "a"} {
		say(t, s, id, "hello")
	}
	if got := list(); got != "a c b" {
		t.Errorf("list %q, want the most recently changed first: a c b", got)
	}
	remove(t, s, conversation.Filter{ID: "c"}, 1)
	remove(t, s, conversation.Filter{ID: "c"}, 0)
	if got := list(); got != "a b" {
		t.Errorf("list %q, want a b", got)
	}
	if c := say(t, s, "c", "anew"); len(c.Turns) != 1 {
		t.Errorf("a deleted conversation begins with %d turns", len(c.Turns)-1)
	}
}

func testCopies(t *testing.T, s conversation.Store) {
	claim := begin(t, s, "a")
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 1, Text: "one", Detail: json.RawMessage(`[1]`)})
	c.Asked = []conversation.Pending{{ID: "p", Chosen: []string{"x"}, Options: []conversation.Option{{ID: "1", Passages: []string{"x"}}}}}
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	spoil := func(c *conversation.Conversation) {
		c.Turns[0].Text = "spoilt"
		c.Turns[0].Detail[1] = '2'
		c.Asked[0].Options[0].Passages[0] = "spoilt"
		c.Asked[0].Chosen[0] = "spoilt"
	}
	spoil(c)
	spoil(load(t, s, "a"))
	got := load(t, s, "a")
	if got.Turns[0].Text != "one" || string(got.Turns[0].Detail) != "[1]" || got.Asked[0].Options[0].Passages[0] != "x" || got.Asked[0].Chosen[0] != "x" {
		t.Errorf("changing a copy changed the store: %+v", got)
	}
}

func testClosed(t *testing.T, s conversation.Store) {
	claim := begin(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	claim.Release()
	if _, err := s.Begin(t.Context(), conversation.Request{Conversation: "a"}); err == nil || errors.Is(err, conversation.ErrBusy) {
		t.Errorf("claiming in a closed store: %v", err)
	}
	if _, err := s.Load(t.Context(), "a", conversation.All); err == nil || errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("loading from a closed store: %v", err)
	}
}

func testLast(t *testing.T, s conversation.Store) {
	claim := begin(t, s, "a")
	c := claim.Conversation()
	const turns = conversation.DefaultLast + 50
	for i := range turns {
		c.Turns = append(c.Turns, conversation.Turn{Number: i + 1, Text: fmt.Sprint("t", i+1), Detail: json.RawMessage(`{}`)})
	}
	for i := range conversation.MaxAsked + 10 {
		c.Asked = append(c.Asked, conversation.Pending{ID: fmt.Sprint("c", i+1), Text: "which?"})
	}
	if err := claim.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ last, earlier int }{
		{0, 50}, {conversation.All, 0}, {1, turns - 1}, {turns, 0}, {turns + 1, 0},
	} {
		c, err := s.Load(t.Context(), "a", tc.last)
		if err != nil || c.Earlier != tc.earlier || c.Next() != turns+1 || c.Turns[0].Number != tc.earlier+1 || c.Turns[len(c.Turns)-1].Number != turns {
			t.Fatalf("the last %d turns: %d after %d, %v", tc.last, len(c.Turns), c.Earlier, err)
		}
		if first := c.Asked[0].ID; len(c.Asked) != conversation.MaxAsked || first != "c11" {
			t.Errorf("%d clarifications from %s on, want the last %d", len(c.Asked), first, conversation.MaxAsked)
		}
	}
	claim, err := s.Begin(t.Context(), conversation.Request{Conversation: "a", Last: 2})
	if err != nil {
		t.Fatal(err)
	}
	c = claim.Conversation()
	for _, turn := range c.Turns {
		if turn.Detail != nil {
			t.Errorf("a claim was given the detail %s", turn.Detail)
		}
	}
	if got := texts(c); got != fmt.Sprintf("%d t%d|%d t%d", turns-1, turns-1, turns, turns) {
		t.Fatalf("a claim on the last 2 has %s", got)
	}
	if got := c.Before(turns); len(got) != 1 || len(c.Before(3)) != 0 || len(c.Before(turns+1)) != 2 {
		t.Errorf("before turn %d: %+v", turns, got)
	}
	c.Asked[3].Chosen = []string{"this"}
	c.Asked = append(c.Asked, conversation.Pending{ID: "new", Text: "which?"})
	commit(t, claim, conversation.Turn{Number: turns + 1, Text: "one more"})
	c = load(t, s, "a")
	if len(c.Turns) != turns+1 || c.Turns[0].Text != "t1" || c.Turns[turns].Text != "one more" {
		t.Fatalf("%d turns", len(c.Turns))
	}
	if n := len(c.Asked); c.Asked[n-1].ID != "new" || c.Asked[2].ID != "c14" || len(c.Asked[2].Chosen) != 1 || len(c.Asked[3].Chosen) != 0 {
		t.Errorf("clarifications %+v ... %+v", c.Asked[:4], c.Asked[n-1])
	}
}

func testKey(t *testing.T, s conversation.Store) {
	send := func(id, key string) (conversation.Claim, error) {
		return s.Begin(t.Context(), conversation.Request{Conversation: id, Text: "hello", Key: key})
	}
	first, err := send("a", "k")
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := send("a", "k")
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("the second did not wait for the first: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	commit(t, first, conversation.Turn{Number: 1, Text: "hello", Kind: conversation.KindAnswer, Reply: "hi", Detail: json.RawMessage(`[1]`)})
	var repeat *conversation.RepeatError
	if err := <-second; !errors.As(err, &repeat) || repeat.Turn.Reply != "hi" || string(repeat.Turn.Detail) != "[1]" || repeat.Turn.Number != 1 || repeat.Turn.Key != "k" {
		t.Fatalf("the second got %v, want the first's turn", err)
	}
	say(t, s, "a", "another message")
	if _, err := send("a", "k"); !errors.As(err, &repeat) || repeat.Turn.Number != 1 {
		t.Errorf("later: %v, want the first turn", err)
	}
	for _, r := range [][2]string{{"b", "k"}, {"a", "l"}, {"a", ""}, {"a", ""}} { // none of these is it
		claim, err := send(r[0], r[1])
		if err != nil {
			t.Fatalf("conversation %q, key %q: %v", r[0], r[1], err)
		}
		commit(t, claim, conversation.Turn{Number: claim.Conversation().Next(), Kind: conversation.KindAnswer})
	}
	failed, err := send("a", "m")
	if err != nil {
		t.Fatal(err)
	}
	failed.Release()
	again, err := send("a", "m")
	if err != nil {
		t.Fatalf("a message whose turn failed, sent again: %v", err)
	}
	again.Release()
	for _, key := range []string{"a\x00b", "a\xffb", strings.Repeat("x", 2000)} {
		if _, err := send("a", key); err == nil {
			t.Errorf("key %.40q was taken", key)
		}
	}
}

func testPartial(t *testing.T, s conversation.Store) {
	r := conversation.Request{Conversation: "a", Text: "hello", Key: "k"}
	claim, err := s.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, claim, conversation.Turn{Number: 1, Text: "hello", Kind: conversation.KindPartial, Reply: "as far as"})
	c := load(t, s, "a")
	if got := c.Turns[0]; got.Kind != conversation.KindPartial || got.Reply != "as far as" {
		t.Errorf("kept %+v", got)
	}
	if len(c.History()) != 0 {
		t.Errorf("a turn that was broken off is part of the dialogue: %+v", c.History())
	}
	claim, err = s.Begin(t.Context(), r) // and may be sent again
	if err != nil {
		t.Fatal(err)
	}
	commit(t, claim, conversation.Turn{Number: 2, Text: "hello", Kind: conversation.KindAnswer, Reply: "whole"})
	var repeat *conversation.RepeatError
	if _, err := s.Begin(t.Context(), r); !errors.As(err, &repeat) || repeat.Turn.Number != 2 {
		t.Errorf("sent once more: %v, want turn 2", err)
	}
}

func testUsers(t *testing.T, s conversation.Store) {
	send := func(id, user string) (conversation.Claim, error) {
		return s.Begin(t.Context(), conversation.Request{Conversation: id, User: user, Text: "hello", Key: "k"})
	}
	for _, c := range [][2]string{{"a1", "ada"}, {"b1", "bob"}, {"a2", "ada"}, {"n", ""}, {"o", "' OR 1=1 --"}} {
		claim, err := send(c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		commit(t, claim, conversation.Turn{Number: 1, Text: "hello", Kind: conversation.KindAnswer})
		if got := load(t, s, c[0]); got.User != c[1] {
			t.Errorf("the conversation's user is %q, want %q", got.User, c[1])
		}
		for _, other := range []string{"eve", "Ada", "ada "} {
			if _, err := send(c[0], other); !errors.Is(err, conversation.ErrUser) {
				t.Errorf("%s in %s's conversation: %v, want ErrUser", other, c[1], err)
			}
		}
	}
	if _, err := s.Begin(t.Context(), conversation.Request{Conversation: "a1"}); !errors.Is(err, conversation.ErrUser) {
		t.Errorf("nobody in ada's conversation: %v, want ErrUser", err)
	}
	if got := ids(t, s, conversation.Filter{User: "ada"}); got != "a2 a1" {
		t.Errorf("ada's are %q", got)
	}
	if got := ids(t, s, conversation.Filter{User: "ada", ID: "b1"}); got != "" {
		t.Errorf("ada's b1 is %q", got)
	}
	remove(t, s, conversation.Filter{User: "bob", ID: "a1"}, 0)
	remove(t, s, conversation.Filter{User: "ada"}, 2)
	if got := ids(t, s, conversation.Filter{}); got != "o n b1" {
		t.Errorf("left are %q", got)
	}
	for _, user := range []string{"a\x00b", "a\xffb", strings.Repeat("x", 2000)} {
		if _, err := send("z", user); err == nil {
			t.Errorf("user %.40q was taken", user)
		}
	}
}

func testAge(t *testing.T, s conversation.Store) {
	say(t, s, "old", "hello")
	say(t, s, "running", "hello")
	claim := begin(t, s, "running")
	defer claim.Release()
	time.Sleep(5 * time.Millisecond)
	between := time.Now()
	time.Sleep(5 * time.Millisecond)
	say(t, s, "new", "hello")
	for _, i := range list(t, s, conversation.Filter{}) {
		if i.Created.After(i.Changed) || time.Since(i.Changed) > time.Minute || i.Changed.Location() != time.UTC {
			t.Errorf("%+v", i)
		}
	}
	if got := ids(t, s, conversation.Filter{Before: between}); got != "running old" {
		t.Errorf("older ones are %q", got)
	}
	remove(t, s, conversation.Filter{Before: between}, 1)
	if got := ids(t, s, conversation.Filter{}); got != "new running" {
		t.Errorf("left are %q, want the new one and that in which a turn runs", got)
	}
	if _, err := s.Delete(t.Context(), conversation.Filter{}); err == nil {
		t.Error("an empty filter deleted all")
	}
}

func testOpen(t *testing.T, s conversation.Store) {
	before := time.Now().Add(-time.Minute)
	claim, err := s.Begin(t.Context(), conversation.Request{Conversation: "a", Text: "caf\xe9?", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, s, "a")
	if o := c.Open; o == nil || o.Number != 1 || o.Text != "caf\uFFFD?" || o.Key != "k" || o.Kind != "" || o.At.Before(before) || len(c.Turns) != 0 {
		t.Errorf("while the first turn runs: %+v", c)
	}
	if l := list(t, s, conversation.Filter{}); len(l) != 1 || !l[0].Running || l[0].Turns != 0 || l[0].Pending {
		t.Errorf("listed %+v", l)
	}
	p := conversation.Pending{ID: "c1", Text: "which?"}
	claim.Conversation().Pending = &p
	commit(t, claim, conversation.Turn{Number: 1, Text: "caf", Kind: conversation.KindClarification})
	if l := list(t, s, conversation.Filter{}); len(l) != 1 || l[0].Running || l[0].Turns != 1 || !l[0].Pending {
		t.Errorf("listed %+v", l)
	}
	claim = begin(t, s, "a")
	if claim.Conversation().Open != nil {
		t.Error("a claim was given its own turn")
	}
	claim.Release()
	if c := load(t, s, "a"); c.Open != nil || len(c.Turns) != 1 {
		t.Errorf("after it: %+v", c)
	}
}

func testTitles(t *testing.T, s conversation.Store) {
	check := func(when, want string) {
		t.Helper()
		listed := list(t, s, conversation.Filter{ID: "a"})
		c, err := s.Load(t.Context(), "a", 1)
		if err != nil || len(listed) != 1 {
			t.Fatalf("%s: %v, listed %v", when, err, listed)
		}
		if c.Title != want || listed[0].Title != want {
			t.Errorf("%s: the title is %q, listed as %q, want %q", when, c.Title, listed[0].Title, want)
		}
	}
	rename := func(title string) {
		t.Helper()
		if err := s.Rename(t.Context(), "a", title); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Rename(t.Context(), "a", "x"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("renamed before it was there: %v", err)
	}
	claim, err := s.Begin(t.Context(), conversation.Request{Conversation: "a", Text: "What is the\ndeposit?"})
	if err != nil {
		t.Fatal(err)
	}
	check("while the first turn runs", "What is the deposit?")
	rename("Before its end")
	check("renamed while a turn runs", "Before its end")
	commit(t, claim, conversation.Turn{Number: 1, Text: "What is the\ndeposit?", Kind: conversation.KindPartial, Reply: "It"})
	check("after the turn", "Before its end")
	rename("")
	check("taken away", "What is the deposit?")
	for range 3 {
		say(t, s, "a", "And for the Cargo 2?")
	}
	check("after more turns", "What is the deposit?")
	changed := list(t, s, conversation.Filter{ID: "a"})[0].Changed
	rename(" Depo\x00sits\r\n  \xff ")
	check("cleaned", "Depo sits \uFFFD")
	say(t, s, "a", "And for the City 2?")
	check("kept by a turn", "Depo sits \uFFFD")
	rename(strings.Repeat("x", 2*conversation.MaxTitle))
	check("shortened", strings.Repeat("x", conversation.MaxTitle)+"…")
	if now := list(t, s, conversation.Filter{ID: "a"})[0].Changed; now.Equal(changed) {
		t.Error("a turn did not change the conversation's time")
	} else if rename("y"); !list(t, s, conversation.Filter{ID: "a"})[0].Changed.Equal(now) {
		t.Error("a new title changed the conversation's time")
	}
	claim = begin(t, s, "b")
	claim.Release()
	if err := s.Rename(t.Context(), "b", "x"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("renamed what was released: %v", err)
	}
}

func testLimit(t *testing.T, s conversation.Store) {
	for _, id := range []string{"a", "b", "c", "d"} {
		say(t, s, id, "hello")
	}
	all := list(t, s, conversation.Filter{})
	for _, c := range []struct {
		f    conversation.Filter
		want string
	}{
		{conversation.Filter{Limit: 2}, "d c"},
		{conversation.Filter{Limit: 9}, "d c b a"},
		{conversation.Filter{Limit: 2, Before: all[1].Changed}, "b a"},
		{conversation.Filter{Limit: 1, ID: "a"}, "a"},
	} {
		if got := ids(t, s, c.f); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
	if _, err := s.Delete(t.Context(), conversation.Filter{Limit: 1}); !errors.Is(err, conversation.ErrNoFilter) {
		t.Errorf("deleting with a limit alone: %v", err)
	}
}

func testQueue(t *testing.T, s conversation.Store) {
	claim := begin(t, s, "a")
	waiting := make(chan error, 1)
	go func() {
		_, err := Say(t.Context(), s, "a", "waits")
		waiting <- err
	}()
	time.Sleep(50 * time.Millisecond)
	start := time.Now()
	if _, err := s.Begin(t.Context(), conversation.Request{Conversation: "a"}); !errors.Is(err, conversation.ErrBusy) || time.Since(start) > time.Second {
		t.Errorf("a second that waits: %v after %v, want ErrBusy at once", err, time.Since(start))
	}
	claim.Release()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	say(t, s, "a", "free again")
}
