package lora

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/gate"
)

// reading is what the model made of one request, in terms of its texts.
type reading struct {
	gate1, gate2 float64 // logits; gate2 is 0 at gate 1
	unclear      []mark  // words of the question that are unclear, surest first
	settled      []mark  // words of the dialogue that settle the case, surest first
	passages     []passageReading
	conflict     [][]float64 // probability that two passages are in conflict
	parallel     [][]bool    // whether two headings say the same of different things, none of them named
	unclearAlone bool        // whether gate 1 would ask
	plain        []int       // passages among which the question plainly does not choose
}

// passageReading is what the model made of one passage. Probabilities.
type passageReading struct {
	answers   float64 // it answers the question under some reading
	live      float64 // its answer is still possible, given the dialogue
	answer    mark    // the words that answer
	condition mark    // the words that say when or for whom
	inTitle   bool    // the condition stands in the title
}

// mark is a run of marked words.
type mark struct {
	text  string
	score float64 // mean probability of its tokens, 0 for no mark
	high  float64 // highest probability of a token
}

// read turns the heads' outputs into a reading of r. post is nil at gate 1.
func read(r gate.Request, talk []segment, pre output, post *output) reading {
	out := reading{gate1: pre.gate}
	sources := map[int]string{len(r.History): r.Question}
	for i, m := range r.History {
		sources[i] = m.Text
	}
	tags := pre.tags[0]
	if post != nil {
		tags = post.tags[0]
	}
	for _, m := range runs(talk[0], sources, tags, tagUnclear, .5) {
		if m.source == len(r.History) {
			out.unclear = append(out.unclear, m.mark)
		}
	}
	for _, m := range runs(talk[0], sources, tags, tagSettled, .5) {
		out.settled = append(out.settled, m.mark)
	}
	if post == nil {
		return out
	}
	out.gate2 = post.gate
	for i, p := range r.Passages {
		s, tags := talk[i+1], post.tags[i+1]
		sources := map[int]string{sourceTitle: p.Title, sourceText: p.Text}
		pr := passageReading{answers: sigmoid(post.passage[i][0]), live: sigmoid(post.passage[i][1])}
		for _, m := range runs(s, sources, tags, tagAnswer, .4) {
			if m.source == sourceText {
				pr.answer = m.mark
				break
			}
		}
		if m := runs(s, sources, tags, tagCondition, .4); len(m) > 0 {
			pr.condition, pr.inTitle = m[0].mark, m[0].source == sourceTitle
		}
		out.passages = append(out.passages, pr)
	}
	out.parallel = parallels(r)
	out.conflict = make([][]float64, len(post.pair))
	for i, row := range post.pair {
		out.conflict[i] = make([]float64, len(row))
		for j, l := range row {
			if i != j {
				out.conflict[i][j] = sigmoid(l)
			}
		}
	}
	return out
}

type sourceMark struct {
	mark
	source int
}

// runs finds the stretches of tokens whose probability for a tag is at least
// low; a gap of one token is bridged. Each is widened to whole words. Only
// texts in sources count. The surest comes first, where a run's length counts a little.
func runs(s segment, sources map[int]string, tags [][]float32, tag int, low float32) []sourceMark {
	var out []sourceMark
	for i := 0; i < len(s.tokens); {
		t := s.tokens[i]
		if tags[i][tag] < low || sources[t.source] == "" {
			i++
			continue
		}
		start, end, last := t.start, t.end, i
		for j := i + 1; j < len(s.tokens) && j <= last+2; j++ {
			if u := s.tokens[j]; u.source == t.source && tags[j][tag] >= low {
				end, last = u.end, j
			} else if u.source != t.source {
				break
			}
		}
		var sum float64
		m := sourceMark{source: t.source}
		for _, p := range tags[i : last+1] {
			sum += float64(p[tag])
			m.high = max(m.high, float64(p[tag]))
		}
		m.score = sum / float64(last+1-i)
		m.text = wholeWords(sources[t.source], start, end)
		if m.text != "" {
			out = append(out, m)
		}
		i = last + 1
	}
	slices.SortStableFunc(out, func(a, b sourceMark) int {
		rank := func(m sourceMark) float64 { return m.score * float64(min(len(strings.Fields(m.text)), 4)+3) }
		switch {
		case rank(a) > rank(b):
			return -1
		case rank(a) < rank(b):
			return 1
		}
		return 0
	})
	return out
}

// wholeWords widens text[start:end] to the borders of its first and last word
// and trims punctuation from both ends.
func wholeWords(text string, start, end int) string {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	if r, _ := utf8.DecodeRuneInString(text[start:]); inWord(r) {
		for start > 0 {
			r, size := utf8.DecodeLastRuneInString(text[:start])
			if !inWord(r) || r > 0x2E80 {
				break
			}
			start -= size
		}
	}
	if r, _ := utf8.DecodeLastRuneInString(text[:end]); inWord(r) {
		for end < len(text) {
			r, size := utf8.DecodeRuneInString(text[end:])
			if !inWord(r) || r > 0x2E80 {
				break
			}
			end += size
		}
	}
	return strings.Trim(text[start:end], " \t\n.,;:!?()[]\"'“”‘’«»|*_-–—")
}
