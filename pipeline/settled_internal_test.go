package pipeline

import (
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
)

// Of two choices that were settled differently the last one counts.
func TestCarryOverKeepsToTheLast(t *testing.T) {
	options := []conversation.Option{{ID: "1", Text: "City 2"}, {ID: "2", Text: "Cargo 2"}}
	now := turn{question: "What is the deposit?", conv: &conversation.Conversation{Asked: []conversation.Pending{
		{ID: "c1", Options: options, Chosen: []string{"City 2"}},
		{ID: "c3", Options: options, Chosen: []string{"Cargo 2"}},
	}}}
	got := now.carryOver([]retrieval.Passage{{ID: "a", Title: "Deposit: City 2"}, {ID: "b", Title: "Deposit: Cargo 2"}})
	if len(got) != 1 || got[0].ID != "b" || now.assumed != "Cargo 2" {
		t.Errorf("%+v, assumed %q", got, now.assumed)
	}
}
