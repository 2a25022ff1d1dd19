package lora

import (
	"context"
	"slices"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

// leaning is from which difference of similarity on a text speaks of one of
// several things rather than of another: "I am an employee" is nearer to
// "staff" than to "visitors", while what is about something else is about as
// far from both. Measured on the training cases.
const leaning = 0.2

// plain finds the passages among which the question plainly does not choose. A
// dialogue that has no bearing on the choice settles nothing, whatever it says of
// itself: then the question is judged alone.
func (c *Clarifier) plain(ctx context.Context, r gate.Request) ([]int, error) {
	family := plain(r)
	if family != nil || len(r.History) == 0 {
		return family, nil
	}
	alone := r
	alone.History = nil
	if family = plain(alone); family == nil {
		return nil, nil
	}
	bears, err := c.bears(ctx, r, family)
	if bears || err != nil {
		return nil, err
	}
	return family, nil
}

// bears reports whether what the user said before may settle which of the
// passages of a family is meant: it holds a word that some passages hold and
// others do not, or is clearly nearer in meaning to the name of one of them. What
// another passage is about and was answered is done with. What a document was quoted
// with is no word of the user; what the user was asked and replied to is.
func (c *Clarifier) bears(ctx context.Context, r gate.Request, family []int) (bool, error) {
	holding, inFamily := map[string]int{}, map[string]bool{} // how many passages hold a word
	for i, p := range r.Passages {
		words := union(titleWords(p.Title), content(p.Text))
		for w := range words {
			holding[w]++
		}
		if slices.Contains(family, i) {
			inFamily = union(inFamily, words)
		}
	}
	var said []string
	settling := map[string]bool{}
	for i, m := range r.History {
		last := i+1 == len(r.History)
		if m.Role != conversation.User && (last || !strings.Contains(m.Text, "?")) {
			continue
		}
		said = append(said, m.Text)
		words := titleWords(m.Text)
		if m.Role == conversation.User && !last && strings.Contains(m.Text, "?") {
			words = minus(words, minus(content(r.History[i+1].Text), inFamily)) // asked and answered
		}
		settling = union(settling, words)
	}
	for w := range minus(settling, content(r.Question)) {
		if n := holding[w]; n > 0 && n < len(r.Passages) {
			return true, nil
		}
	}
	titles := make([]string, len(family))
	for i, k := range family {
		titles[i] = r.Passages[k].Title
	}
	names := nameApart(titles)
	vectors, err := c.embedder.EmbedDocuments(ctx, slices.Concat(names, said))
	if err != nil {
		return false, err
	}
	for _, text := range vectors[len(names):] {
		least, most := 1.0, -1.0
		for _, name := range vectors[:len(names)] {
			s := 0.0
			for i, v := range name {
				s += float64(v) * float64(text[i])
			}
			least, most = min(least, s), max(most, s)
		}
		if most-least >= leaning {
			return true, nil
		}
	}
	return false, nil
}

// withoutPreamble moves what stands before the question itself into the
// dialogue, where a question is longer than what is read of one, so that the
// question is not cut off.
func (c *Clarifier) withoutPreamble(r gate.Request) gate.Request {
	if len(r.Question) < c.config.Budget.PassageQuestion || c.model.Tokenizer().Count(r.Question) <= c.config.Budget.PassageQuestion {
		return r
	}
	var before, asked []string
	for s := range strings.SplitAfterSeq(sentenceEnd.ReplaceAllString(r.Question, "$0\x00"), "\x00") {
		s = strings.TrimSpace(strings.TrimSuffix(s, "\x00"))
		if strings.ContainsAny(s, "?？") {
			asked = append(asked, s)
		} else {
			before = append(before, s)
		}
	}
	if len(asked) == 0 || len(before) == 0 {
		return r
	}
	r.Question = strings.Join(asked, " ")
	r.History = append(slices.Clone(r.History), conversation.Message{Role: conversation.User, Text: strings.Join(before, " ")})
	return r
}
