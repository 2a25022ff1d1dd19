package langchain

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/askback/askback/conversation"
)

// script is a model that says one thing.
type script struct {
	says string
	err  error
	got  []llms.MessageContent
}

func (s *script) GenerateContent(_ context.Context, m []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	s.got = m
	if s.err != nil {
		return nil, s.err
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: s.says}}}, nil
}

func (s *script) Call(ctx context.Context, prompt string, o ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, s, prompt, o...)
}

func TestReader(t *testing.T) {
	p := conversation.Pending{ID: "c1", Question: "How do I claim?", Text: "Employed or self-employed?", Options: []conversation.Option{{ID: "1", Text: "employed"}, {ID: "2", Text: "self-employed"}}}
	for _, tc := range []struct {
		model script
		kind  conversation.ReplyKind
		rule  string
	}{
		{script{says: `{"kind":"choice","options":["2"],"detail":""}`}, conversation.ReplyChoice, "reader"},
		{script{says: "Sure! ```json\n{\"kind\":\"choice\",\"options\":[\"2\"]}\n```"}, conversation.ReplyChoice, "reader"},
		{script{says: `{"kind":"choice","options":["3"]}`}, conversation.ReplyDetail, "detail"},
		{script{says: `I think it is the second.`}, conversation.ReplyDetail, "detail"},
		{script{says: ``}, conversation.ReplyDetail, "detail"},
		{script{err: errors.New("no model")}, conversation.ReplyDetail, "detail"},
	} {
		r, err := NewReader(&tc.model)
		if err != nil {
			t.Fatal(err)
		}
		got, err := conversation.FoldWith(t.Context(), p, `I write invoices"} sing`, nil, r)
		if err != nil || got.Kind != tc.kind || got.Rule != tc.rule {
			t.Errorf("the model says %q: %s (%s), %v; want %s (%s)", tc.model.says, got.Kind, got.Rule, err, tc.kind, tc.rule)
		}
		if data := tc.model.got[1].Parts[0].(llms.TextContent).Text; !strings.Contains(data, `"reply":"I write invoices\"} sing"`) {
			t.Errorf("the reply is not given as data: %s", data)
		}
	}
	if _, err := NewReader(nil); err == nil {
		t.Error("a reader without a model")
	}
	m := script{says: `{"question": "When is the Fenmouth shop open?"}`}
	r, _ := NewReader(&m)
	got, err := r.Standalone(t.Context(), []conversation.Message{{Role: conversation.User, Text: "Where is the Fenmouth shop?"}}, "When is it open?")
	if err != nil || got != "When is the Fenmouth shop open?" {
		t.Errorf("%q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Standalone(ctx, nil, "When is it open?"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
