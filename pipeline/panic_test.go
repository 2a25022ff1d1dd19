package pipeline_test

import (
	"context"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
)

type mad struct{ conversation.Store }

func (mad) Begin(context.Context, conversation.Request) (conversation.Claim, error) {
	panic("a bug")
}

func (mad) Retrieve(context.Context, retrieval.Query) ([]retrieval.Passage, error) { panic("a bug") }

// A store or a retriever that panics fails its turn and not the program, and the
// conversation goes on.
func TestPanics(t *testing.T) {
	store := conversation.NewMemory()
	for part, parts := range map[string]pipeline.Parts{
		"the store":     {Store: mad{store}, Retriever: deposits(), Generator: &quoter{}},
		"the retriever": {Store: store, Retriever: mad{}, Generator: &quoter{}},
	} {
		p, err := pipeline.New(parts)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Ask(t.Context(), pipeline.Message{Conversation: "c", Text: "What is the deposit?"})
		if err == nil || !strings.Contains(err.Error(), part+" panicked: a bug") {
			t.Errorf("%s: %v", part, err)
		}
	}
	p, err := pipeline.New(pipeline.Parts{Store: store, Retriever: deposits(), Generator: &quoter{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ask(t.Context(), pipeline.Message{Conversation: "c", Text: "What is the deposit?"}); err != nil {
		t.Errorf("the turn after it: %v", err)
	}
}
