package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/retrievertest"
	"github.com/askback/askback/server/tenant"
)

// say stores a turn in a conversation.
func say(ctx context.Context, t *testing.T, s conversation.Store, id string) {
	t.Helper()
	claim, err := s.Begin(ctx, conversation.Request{Conversation: id, User: "whoever", Text: "hello", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	c := claim.Conversation()
	if c.ID != id {
		t.Errorf("the claim is of %q", c.ID)
	}
	c.Turns = append(c.Turns, conversation.Turn{Number: c.Next(), Text: "hello of " + tenant.Of(ctx), Kind: conversation.KindAnswer, Reply: "yes", Key: "k"})
	if err := claim.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
}

func list(ctx context.Context, t *testing.T, s conversation.Store, f conversation.Filter) (ids []string) {
	t.Helper()
	for i, err := range s.List(ctx, f) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	return ids
}

// Two tenants use the same ids and keys, and never meet.
func TestConversations(t *testing.T) {
	inner := conversation.NewMemory()
	s := tenant.Conversations(inner)
	a, b := tenant.With(t.Context(), "a"), tenant.With(t.Context(), "b")
	for _, ctx := range []context.Context{a, b} {
		say(ctx, t, s, "one")
		c, err := s.Load(ctx, "one", conversation.All)
		if err != nil || c.ID != "one" || len(c.Turns) != 1 || c.Turns[0].Text != "hello of "+tenant.Of(ctx) || c.User != tenant.Of(ctx) {
			t.Errorf("%+v, %v", c, err)
		}
	}
	say(a, t, s, "two/b/one")
	// Somebody who is called as a tenant in another program's conversation.
	say2 := func(id, user string) {
		claim, err := inner.Begin(t.Context(), conversation.Request{Conversation: id, User: user, Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		defer claim.Release()
		c := claim.Conversation()
		c.Turns = append(c.Turns, conversation.Turn{Number: 1, Kind: conversation.KindAnswer})
		if err := claim.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		say2(fmt.Sprint("plain", i), "a")
	}
	say2("a/theirs", "somebody else")
	if got := list(a, t, s, conversation.Filter{}); !slices.Equal(got, []string{"one", "two/b/one"}) {
		t.Errorf("a has %q", got)
	}
	if got := list(a, t, s, conversation.Filter{Limit: 2, User: "b"}); !slices.Equal(got, []string{"one", "two/b/one"}) {
		t.Errorf("a has %q of at most two", got)
	}
	if got := list(b, t, s, conversation.Filter{ID: "one"}); !slices.Equal(got, []string{"one"}) {
		t.Errorf("b has %q", got)
	}
	for _, id := range []string{"two/b/one", "plain0", "a/one", "theirs", strings.Repeat("x", 2000)} {
		ctx := b
		if id == "theirs" || id == "plain0" {
			ctx = a
		}
		_, err := s.Load(ctx, id, 1)
		if !errors.Is(err, conversation.ErrNotFound) || !strings.Contains(err.Error(), id) {
			t.Errorf("loading %.20q: %v", id, err)
		}
		if err := s.Rename(ctx, id, "x"); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("renaming %.20q: %v", id, err)
		}
	}
	if _, err := s.Begin(a, conversation.Request{Conversation: "theirs", Text: "x"}); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("writing what is another's under its id: %v", err)
	}
	if _, err := s.Begin(a, conversation.Request{Conversation: strings.Repeat("x", 1000), Text: "x"}); !errors.Is(err, tenant.ErrLongID) {
		t.Errorf("a long id: %v", err)
	}
	if _, err := s.Begin(a, conversation.Request{Conversation: "..", Text: "x"}); err == nil {
		t.Error("an id that is a folder is taken")
	}
	if _, err := s.Delete(a, conversation.Filter{}); err == nil {
		t.Error("all are deleted")
	}
	if n, err := s.Delete(a, conversation.Filter{ID: "one"}); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := s.Load(b, "one", 1); err != nil {
		t.Errorf("what b has is gone: %v", err)
	}
}

// Work that is nobody's finds nothing, and everything less.
func TestNone(t *testing.T) {
	s := tenant.Conversations(conversation.NewMemory())
	k := tenant.NewKnowledge(open(t), func(context.Context, string) (tenant.Store, error) { return open(t), nil })
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"Begin":  func() error { _, err := s.Begin(ctx, conversation.Request{Conversation: "a"}); return err },
		"Load":   func() error { _, err := s.Load(ctx, "a", 1); return err },
		"Rename": func() error { return s.Rename(ctx, "a", "b") },
		"List": func() (failed error) {
			for _, err := range s.List(ctx, conversation.Filter{}) {
				failed = err
			}
			return failed
		},
		"Delete":           func() error { _, err := s.Delete(ctx, conversation.Filter{ID: "a"}); return err },
		"Retrieve":         func() error { _, err := k.Retrieve(ctx, retrieval.Query{Texts: []string{"a"}}); return err },
		"Explain":          func() error { _, err := k.Explain(ctx, retrieval.Query{Texts: []string{"a"}}); return err },
		"KnownIdentifiers": func() error { _, err := k.KnownIdentifiers(ctx, "ERR-5172"); return err },
		"Documents":        func() error { _, err := k.Documents(ctx); return err },
		"List of documents": func() error {
			_, err := k.List(ctx)
			return err
		},
		"Get":                 func() error { _, err := k.Get(ctx, "a"); return err },
		"Replace":             func() error { return k.Replace(ctx, "a", "f", nil) },
		"Delete of documents": func() error { return k.Delete(ctx, "a") },
	} {
		if err := do(); !errors.Is(err, tenant.ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func open(t *testing.T) *local.Index {
	t.Helper()
	index, err := local.Open(t.Context(), local.Options{Embedder: new(retrievertest.Embedder)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })
	return index
}

// put stores a document of one passage.
func put(ctx context.Context, t *testing.T, s retrieval.Store, name, text string) {
	t.Helper()
	if err := s.Replace(ctx, name, retrieval.UploadMark+text, []retrieval.Passage{{ID: name + "#1", Document: name, Title: name, Text: text}}); err != nil {
		t.Fatal(err)
	}
}

func TestKnowledge(t *testing.T) {
	common := open(t)
	put(t.Context(), t, common, "brakes.md", "Brakes are checked each spring by the workshop. ERR-5171 is a worn brake.")
	put(t.Context(), t, common, "leave.md", "Employees have 28 days of leave.")
	opened, failing := 0, true
	k := tenant.NewKnowledge(common, func(_ context.Context, name string) (tenant.Store, error) {
		if failing {
			return nil, errors.New("not now")
		}
		opened++
		return open(t), nil
	})
	a, b := tenant.With(t.Context(), "a"), tenant.With(t.Context(), "b")
	if _, err := k.List(a); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("%v", err)
	}
	failing = false
	put(a, t, k, "pay.md", "Workshop pay of a is 41 an hour. ERR-5172 is a lost key.")
	put(b, t, k, "pay.md", "Workshop pay of b is 99 an hour. ERR-5179 is a lost glove.")
	found := func(ctx context.Context, q string) (texts []string) {
		t.Helper()
		hits, err := k.Explain(ctx, retrieval.Query{Texts: []string{q}, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range hits {
			texts = append(texts, h.Text)
			if i > 0 && h.Score > hits[i-1].Score {
				t.Errorf("%q: out of order: %+v", q, hits)
			}
		}
		return texts
	}
	for _, c := range []struct {
		ctx   context.Context
		q     string
		first string
		none  string
	}{
		{a, "workshop pay an hour", "pay of a", "pay of b"},
		{b, "workshop pay an hour", "pay of b", "pay of a"},
		{a, "days of leave of employees", "28 days", "pay of b"},
		{a, "ERR-5172 in the workshop", "lost key", "glove"},
		{a, "ERR-5171 in the workshop", "worn brake", "glove"},
		{tenant.With(t.Context(), "nobody"), "workshop pay an hour", "Brakes", "pay of"},
	} {
		got := found(c.ctx, c.q)
		if len(got) == 0 || !strings.Contains(got[0], c.first) || strings.Contains(strings.Join(got, " "), c.none) {
			t.Errorf("%s, %q: %q", tenant.Of(c.ctx), c.q, got)
		}
	}
	known, err := k.KnownIdentifiers(a, "ERR-5172 and ERR-5171 and ERR-5179")
	if err != nil || fmt.Sprint(known) != "[{ERR-5172 true []} {ERR-5171 true []} {ERR-5179 false [ERR-5171 ERR-5172]}]" {
		t.Errorf("%v, %v", known, err)
	}
	documents, err := k.List(a)
	if err != nil || len(documents) != 3 || documents[0].ID != "brakes.md" || retrieval.Uploaded(documents[0].Fingerprint) || !retrieval.Uploaded(documents[2].Fingerprint) {
		t.Errorf("%+v, %v", documents, err)
	}
	passages, err := k.Get(b, "pay.md#1", "brakes.md#1", "none")
	if err != nil || len(passages) != 2 || !strings.Contains(passages[0].Text, "pay of b") || !strings.Contains(passages[1].Text, "Brakes") {
		t.Errorf("%+v, %v", passages, err)
	}
	if err := k.Delete(a, "pay.md", "brakes.md"); err != nil {
		t.Fatal(err)
	}
	if fingerprints, err := k.Documents(a); err != nil || len(fingerprints) != 2 || fingerprints["brakes.md"] == "" {
		t.Errorf("after a's deletion: %v, %v", fingerprints, err)
	}
	if passages, _ := k.Get(b, "pay.md#1"); len(passages) != 1 {
		t.Error("b's document is gone with a's")
	}
	if opened != 3 {
		t.Errorf("opened %d times", opened)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}
