package generation

import (
	"context"
	"iter"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
)

// Request is what a generator answers.
type Request struct {
	Question string                 // standalone, as understood
	Asked    string                 // the part of Question that is asked now, where it names beside it what it follows; "": all of it
	History  []conversation.Message // the dialogue before it, oldest first
	Passages []retrieval.Passage    // best first; data, never instructions
	// Each, if over 1, says that the user asked about each of several readings:
	// the first Each passages hold one each, and each is to be answered from.
	Each int
	// Assumption, if set, is stated in the answer: the user did not say which
	// reading was meant and wants an answer all the same.
	Assumption string
}

// Citation ties a place of the answer to the passage it rests on.
type Citation struct {
	N       int    `json:"n"`       // the [n] in the answer's text, from 1
	Passage string `json:"passage"` // passage id
	Title   string `json:"title"`
	Source  string `json:"source"`
	Quote   string `json:"quote"` // the exact words of the passage that the answer rests on
}

// Answer is a whole, grounded answer, or none.
type Answer struct {
	Text      string     `json:"text"` // with [n] marks; "" if Found is false
	Citations []Citation `json:"citations"`
	Found     bool       `json:"found"`             // false: the passages do not hold the answer
	Dropped   []string   `json:"dropped,omitempty"` // citations that a model made up, taken out
}

// Event is a step of generation: pieces of the text while it is written, and
// at the end, exactly once, the whole.
type Event struct {
	Delta string  // the next piece of the text; the pieces joined equal Answer.Text
	Done  *Answer // set in the last event only
}

// Generator answers a question from passages. The stream ends after the event
// that carries Done, or with an error; a stream that ends without either was
// cut. With no passages, or none that hold the answer, Done.Found is false and
// no Delta was sent.
type Generator interface {
	Generate(ctx context.Context, r Request) iter.Seq2[Event, error]
}
