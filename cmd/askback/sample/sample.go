package sample

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"

	"github.com/askback/askback/conversation"
)

// Documents are the Markdown files, all in one folder.
//
//go:embed *.md
var Documents embed.FS

//go:embed questions.jsonl
var questions []byte

// Question is a turn over the sample and what is expected of it.
type Question struct {
	ID       string                 `json:"id"`
	Group    string                 `json:"group"` // questions of one group share their words; the label flips
	History  []conversation.Message `json:"history"`
	Question string                 `json:"question"`

	Pre       int                   `json:"pre"`        // 1: gate 1 should ask
	Post      int                   `json:"post"`       // 1: gate 2 should ask, if gate 1 has not
	SettledBy []string              `json:"settled_by"` // the words of the dialogue that pick the answer
	Unclear   []string              `json:"unclear"`    // the words that are unclear
	Why       string                `json:"kind"`       // why to ask, or why not: entity-differs, passages-agree, ...
	Options   []conversation.Option `json:"options"`    // readings; Passages holds headings

	Clarification string `json:"clarification"` // what a good support agent would ask, "" when clear
	Answer        string `json:"answer"`        // "" when asking, "NOT_IN_PASSAGES" if the sources do not hold it

	Expect    conversation.Kind `json:"expect"`    // how the turn should end
	Gate      string            `json:"gate"`      // "pre", "post", or "" if nothing is asked
	Documents []string          `json:"documents"` // files that the answer or the options rest on
	Headings  []string          `json:"headings"`  // and their sections
	Words     []string          `json:"words"`     // what the answer must contain
	Reply     *Reply            `json:"reply"`     // a reply to the clarification and what it should lead to
	Try       bool              `json:"try"`       // worth showing to a newcomer
}

// Reply is a user's reply to a clarification.
type Reply struct {
	Text    string   `json:"text"`
	Heading string   `json:"heading"` // section that the answer rests on
	Words   []string `json:"words"`   // what the answer must contain
}

// Questions gives the questions over the sample.
func Questions() ([]Question, error) {
	var qs []Question
	for d := json.NewDecoder(bytes.NewReader(questions)); ; {
		var q Question
		switch err := d.Decode(&q); err {
		case nil:
			qs = append(qs, q)
		case io.EOF:
			return qs, nil
		default:
			return nil, fmt.Errorf("reading sample question %d: %w", len(qs)+1, err)
		}
	}
}
