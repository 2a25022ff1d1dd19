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
	tokens []token // as long as IDs; source -1 for special tokens
}

// token is where a token of a segment stands.
type token struct {
	source     int // index of the text in the segment's sources, -1: none
	start, end int // bytes of that text, prefixes excluded
}

// dialogue segments have the history's turns as sources 0..n-1 and the
// question as source n; passage segments have the question as source 0, the
// title as 1 and the text as 2.
const (
	sourceQuestion = 0
	sourceTitle    = 1
	sourceText     = 2
)

// dialogueSegment is [CLS] history question [SEP], tokenised turn by turn; of
// the history the last tokens are kept, of the question the first.
func (c *Clarifier) dialogueSegment(history []conversation.Message, question string) segment {
	b := c.config.Budget
	var past []piece
	for i, m := range history {
		past = append(past, c.pieces(i, c.config.Prefix[string(m.Role)], m.Text)...)
	}
	past = past[max(0, len(past)-b.History):]
	now := c.pieces(len(history), c.config.Prefix["question"], question)
	now = now[:min(len(now), b.Question)]
	var s segment
	s.special(c.model.Tokenizer().CLS(), 0)
	s.add(past, 0)
	s.add(now, 0)
	s.special(c.model.Tokenizer().SEP(), 0)
	return s
}

// passageSegment is [CLS] question [SEP] title. text [SEP]; of each part the
// first tokens are kept.
func (c *Clarifier) passageSegment(question string, p retrieval.Passage) segment {
	b := c.config.Budget
	ask := c.pieces(sourceQuestion, "", question)
	var body []piece
	if p.Title != "" {
		body = c.pieces(sourceTitle, "", p.Title)
		body = append(body, c.pieces(-1, ".", "")...)
	}
	body = append(body, c.pieces(sourceText, "", p.Text)...)
	var s segment
	s.special(c.model.Tokenizer().CLS(), 0)
	s.add(ask[:min(len(ask), b.PassageQuestion)], 0)
	s.special(c.model.Tokenizer().SEP(), 0)
	s.add(body[:min(len(body), b.Passage)], 1)
	s.special(c.model.Tokenizer().SEP(), 1)
	return s
}

// segments is the input of a gate: the dialogue, and at gate 2 the passages.
func (c *Clarifier) segments(r gate.Request) []segment {
	s := []segment{c.dialogueSegment(r.History, r.Question)}
	for _, p := range r.Passages {
		s = append(s, c.passageSegment(r.Question, p))
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
		if t.Start < len(prefix) || source < 0 {
			out[i].token = token{source: -1}
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
	s.add([]piece{{id, token{source: -1}}}, kind)
}
