package lora

import (
	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/internal/encoder"
	"github.com/askback/askback/retrieval"
)

// segment is one sequence of the model's input, with the place of each token
// in the text that it is from.
type segment struct {
	encoder.Sequence
	tokens []token // as long as IDs
}

// token is where a token of a segment stands.
type token struct {
	source     int // which text it is from
	start, end int // bytes of that text, prefixes excluded
}

// The history's turns are the sources 0..n-1 of a segment, and the question is
// source n; a passage's title and text are these two.
const (
	sourceNone = -1 - iota // special tokens and prefixes
	sourceTitle
	sourceText
)

// dialogueTokens are the history and the question, tokenised turn by turn.
type dialogueTokens struct{ past, question []piece }

func (c *Clarifier) dialogue(history []conversation.Message, question string) (d dialogueTokens) {
	for i, m := range history {
		d.past = append(d.past, c.pieces(i, c.config.Prefix[string(m.Role)], m.Text)...)
	}
	d.question = c.pieces(len(history), c.config.Prefix["question"], question)
	return d
}

// add puts the last tokens of the history and the first of the question into s.
func (d dialogueTokens) add(s *segment, history, question int) {
	s.add(d.past[max(0, len(d.past)-history):], 0)
	s.add(d.question[:min(len(d.question), question)], 0)
}

// dialogueSegment is [CLS] history question [SEP].
func (c *Clarifier) dialogueSegment(d dialogueTokens) segment {
	var s segment
	s.special(c.model.Tokenizer().CLS(), 0)
	d.add(&s, c.config.Budget.History, c.config.Budget.Question)
	s.special(c.model.Tokenizer().SEP(), 0)
	return s
}

// passageSegment is [CLS] history question [SEP] title. text [SEP], of type 1
// after the first [SEP]. Read beside the dialogue, a passage tells from its
// first layer on whether it is what the user means.
func (c *Clarifier) passageSegment(d dialogueTokens, p retrieval.Passage) segment {
	var body []piece
	if p.Title != "" {
		body = c.pieces(sourceTitle, "", p.Title)
		body = append(body, c.pieces(sourceNone, ".", "")...)
	}
	body = append(body, c.pieces(sourceText, "", p.Text)...)
	var s segment
	s.special(c.model.Tokenizer().CLS(), 0)
	d.add(&s, c.config.Budget.PassageHistory, c.config.Budget.PassageQuestion)
	s.special(c.model.Tokenizer().SEP(), 0)
	s.add(body[:min(len(body), c.config.Budget.Passage)], 1)
	s.special(c.model.Tokenizer().SEP(), 1)
	return s
}

// segments is the input of a gate: the dialogue, and at gate 2 the passages.
func (c *Clarifier) segments(r gate.Request) []segment {
	d := c.dialogue(r.History, r.Question)
	s := []segment{c.dialogueSegment(d)}
	for _, p := range r.Passages {
		s = append(s, c.passageSegment(d, p))
	}
	return s
}

// piece is a token id and its place.
type piece struct {
	id int32
	token
}

// pieces tokenises prefix + text; tokens of the prefix have no source.
func (c *Clarifier) pieces(source int, prefix, text string) []piece {
	tokens := c.model.Tokenizer().Tokenize(prefix + text)
	out := make([]piece, len(tokens))
	for i, t := range tokens {
		out[i] = piece{t.ID, token{source, t.Start - len(prefix), t.End - len(prefix)}}
		if t.Start < len(prefix) {
			out[i].token = token{source: sourceNone}
		}
	}
	return out
}

func (s *segment) add(ps []piece, kind int32) {
	for _, p := range ps {
		s.IDs, s.Types, s.tokens = append(s.IDs, p.id), append(s.Types, kind), append(s.tokens, p.token)
	}
}

func (s *segment) special(id, kind int32) {
	s.add([]piece{{id, token{source: sourceNone}}}, kind)
}
