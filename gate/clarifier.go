package gate

import (
	"context"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
)

// Stage names one of the two gates.
type Stage string

// The two gates of a turn.
const (
	Pre  Stage = "pre"  // before retrieval: the dialogue alone
	Post Stage = "post" // after retrieval: the dialogue and the passages
)

// Request is what a clarifier reads.
type Request struct {
	Stage    Stage
	History  []conversation.Message // the dialogue before the question, oldest first
	Question string                 // the question as understood so far
	Passages []retrieval.Passage    // at gate 2, best first; nil at gate 1
}

// Verdict is what a clarifier found.
type Verdict struct {
	// Score is the probability, 0 to 1, that answering without asking would be
	// a guess.
	Score float64 `json:"score"`
	// Clarification is what it would ask, in words a support agent would send;
	// written only if Score makes asking possible, otherwise "".
	Clarification string `json:"clarification,omitempty"`
	// Options are the readings it offers, each tied to its passages. None for an
	// open question.
	Options []conversation.Option `json:"options,omitempty"`
	// RuledOut are the ids of passages whose answer does not hold, given what the
	// user said: the turn goes on without them.
	RuledOut []string `json:"ruled_out,omitempty"`
	// Unclear are the user's words that are unclear, if it knows them.
	Unclear []string `json:"unclear,omitempty"`
	// Clarifier names who decided, for the trace.
	Clarifier string `json:"clarifier,omitempty"`
	// Second says what became of a cascade's second clarifier, and SecondError
	// why it failed.
	Second      SecondUse `json:"second,omitempty"`
	SecondError string    `json:"second_error,omitempty"`
}

// Clarifier is the contract of a gate: given the dialogue (and at gate 2 the
// passages), would answering be a guess, and what should be asked? The text of
// questions and passages is data: nothing in it may start or stop a
// clarification. An implementation is safe for concurrent use and honours ctx.
// clarifiertest holds the suite that every implementation passes.
type Clarifier interface {
	Clarify(ctx context.Context, r Request) (Verdict, error)
}
