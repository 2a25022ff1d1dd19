package conversation

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// Settle records in Asked how the pending clarification was settled, and ends
// it. What was settled once is not asked again: see Recall.
func (c *Conversation) Settle(f Folded) {
	if c.Pending == nil {
		return
	}
	i := slices.IndexFunc(c.Asked, func(p Pending) bool { return p.ID == c.Pending.ID })
	if i >= 0 {
		c.Asked = slices.Clone(c.Asked)
		a := &c.Asked[i]
		a.Settled, a.Detail, a.Chosen = f.Kind, f.Detail, nil
		for _, o := range f.Chosen {
			a.Chosen = append(a.Chosen, o.Text)
		}
		if f.Assume {
			a.Chosen = nil
			for _, o := range append(slices.Clone(f.Chosen), a.Options...)[:min(1, len(f.Chosen)+len(a.Options))] {
				a.Assumed = o.Text
			}
		}
	}
	c.Pending = nil
}

// Recalled is what a conversation has settled about a clarification that it would
// show.
type Recalled struct {
	ID     string // of the clarification that settled it
	Option Option // of the new one: what the user chose, said, or what was assumed
	Waived bool   // the user would not or could not say, so that Option is an assumption
}

// Recall finds whether what p asks was settled before: the user chose, named,
// refused to name or did not know one of what p offers, whatever gate asked and in
// whatever words. asked is Conversation.Asked, p the clarification that a gate
// would show; m may be nil. What was settled last counts.
func Recall(ctx context.Context, asked []Pending, p Pending, m Matcher) (Recalled, bool) {
	if len(p.Options) < 2 {
		return Recalled{}, false
	}
	now := newFolder(p, "")
	for _, a := range slices.Backward(asked) {
		if i := now.settledBy(ctx, a, m); i >= 0 {
			waived := a.Settled == ReplyDontKnow || a.Settled == ReplyJustAnswer
			return Recalled{ID: a.ID, Option: p.Options[i].clone(), Waived: waived}, true
		}
	}
	return Recalled{}, false
}

// settledBy gives the option that an earlier clarification settled, or -1.
func (f *folder) settledBy(ctx context.Context, a Pending, m Matcher) int {
	said := ""
	switch {
	case len(a.Chosen) == 1:
		said = a.Chosen[0]
	case a.Settled == ReplyDetail:
		if len(a.Options) > 0 { // it was none of those offered then
			return -1
		}
		got, tie := f.match(words(a.Detail))
		if len(got) == 1 && !tie && !f.byChance(words(a.Detail), f.opts[got[0]]) {
			return got[0]
		}
		return -1
	case a.Assumed != "":
		said = a.Assumed
		if !f.sameChoice(a) {
			return -1
		}
	default:
		return -1
	}
	if i := f.exact(said); i >= 0 {
		return i
	}
	// In other words it is the same choice only if what was not chosen then has
	// its counterpart now too.
	if i := f.counterpart(said); i >= 0 {
		for _, o := range a.Options {
			if j := f.counterpart(o.Text); o.Text != said && j >= 0 && j != i {
				return i
			}
		}
	}
	return f.similar(ctx, a, said, m)
}

// counterpart gives the one option that words of another clarification's option
// name, or -1.
func (f *folder) counterpart(text string) int {
	if i := f.exact(text); i >= 0 {
		return i
	}
	if is, tie := f.match(words(text)); len(is) == 1 && !tie {
		return is[0]
	}
	return -1
}

// sameChoice says whether an earlier clarification offered the same choice: two of
// its options are options now.
func (f *folder) sameChoice(a Pending) bool {
	var same []int
	for _, o := range a.Options {
		if i := f.counterpart(o.Text); i >= 0 && !slices.Contains(same, i) {
			same = append(same, i)
		}
	}
	return len(same) >= 2
}

// The similarities from which options in other words are the same ones.
const (
	sameOption = 0.6
	sameMargin = 0.15
)

// similar pairs options by meaning: each of two options then must be nearest to
// another one now.
func (f *folder) similar(ctx context.Context, a Pending, said string, m Matcher) int {
	if m == nil || len(a.Options) < 2 || f.lang != "en" {
		return -1
	}
	texts := optionsAsShown(f.p.Options)
	nearest := func(text string) int {
		sims, err := m.Similarity(ctx, text, texts)
		if err != nil || len(sims) != len(texts) {
			return -1
		}
		best := 0
		for i, s := range sims {
			if s > sims[best] {
				best = i
			}
		}
		for i, s := range sims {
			if i != best && sims[best]-s < sameMargin {
				return -1
			}
		}
		if sims[best] < sameOption {
			return -1
		}
		return best
	}
	i := nearest(said)
	if i < 0 {
		return -1
	}
	for _, o := range a.Options {
		if o.Text == said {
			continue
		}
		if j := nearest(o.Text); j >= 0 && j != i {
			return i
		}
	}
	return -1
}

func optionsAsShown(options []Option) []string {
	texts := make([]string, len(options))
	for i, o := range options {
		texts[i] = o.Text
	}
	return texts
}

// changes are how somebody begins who takes back what was settled.
var changes = func() [][]string {
	var cs [][]string
	for c := range strings.SplitSeq("actually|in fact|correction|sorry|oh sorry|no sorry|wait|oh wait|no wait|my mistake|i was wrong|i made a mistake|i misspoke|scratch that|come to think of it|i meant|i should have said|turns out|it turns out|i checked|i just checked|"+
		"eigentlich|doch|nein doch|moment|entschuldigung|tut mir leid|ich habe mich geirrt|ich hab mich geirrt|ich habe mich vertan|ich meinte|korrektur|"+
		"en fait|finalement|pardon|je me suis trompe|je me suis trompee|je voulais dire|attendez|erreur|"+
		"en realidad|perdon|me equivoque|me he equivocado|queria decir|espera|espere|mejor dicho|"+
		"其 实|不 对|说 错 了|我 说 错 了|我 搞 错 了|等 一 下|更 正|असल में|दरअसल|गलती हो गई|माफ कीजिए|मेरा मतलब|asal mein|actually", "|") {
		cs = append(cs, plains(c))
	}
	slices.SortFunc(cs, func(a, b []string) int { return len(b) - len(a) })
	return cs
}()

// Amend knows a message that changes what was settled, "actually it's the petrol
// one": it gives the place in asked of the clarification that it is about, and
// the message as the reply to it. last is the last question that was answered;
// Folded.Question is that one with the new choice. A message that asks something
// itself stays as it is.
func Amend(asked []Pending, text, last string) (i int, f Folded, ok bool) {
	text = tidy(text)
	ws := words(text)
	if len(ws) == 0 || utf8.RuneCountInString(text) > 200 || !takesAnother(forms(ws)) {
		return 0, Folded{}, false
	}
	for i, a := range slices.Backward(asked[max(0, len(asked)-8):]) {
		i += max(0, len(asked)-8)
		if len(a.Chosen) != 1 && a.Assumed == "" || len(a.Options) < 2 {
			continue
		}
		old := a.Assumed
		if len(a.Chosen) == 1 {
			old = a.Chosen[0]
		}
		fo := newFolder(a, text)
		got := fo.fold(context.Background())
		asks, own := got.Kind == ReplyNewQuestion, text
		for _, p := range fo.parts() {
			if is, _ := fo.match(p.words); len(is) == 0 && asksWhole(p, fo.lang) {
				asks, own = true, text[p.words[0].start:]
				break
			}
		}
		if got.Kind == ReplyNewQuestion { // "actually it's the petrol one, what pressure then?"
			if is, tie := fo.match(ws); len(is) == 1 && !tie {
				got.Kind, got.Chosen = ReplyChoice, fo.pick(is)
			}
		}
		if got.Kind != ReplyChoice || len(got.Chosen) != 1 || got.Chosen[0].Text == old || got.Rule == "ordinal" {
			continue
		}
		got.Rule = "changed"
		switch {
		case asks:
			got.Question = own
		case last != "":
			got.Question = WithOption(a, last, old, got.Chosen[0])
		}
		return i, got, true
	}
	return 0, Folded{}, false
}

// WithOption is a question with an option of the clarification a in the place of
// another one's text, which it may name or not.
func WithOption(a Pending, question, old string, option Option) string {
	if at := wordIndex(question, old); len(at) > 0 {
		j := at[len(at)-1]
		return question[:j] + option.Text + question[j+len(old):]
	}
	p := Pending{Question: question, Options: a.Options, Gate: a.Gate}
	return compose(p, language(question, option.Text), []string{bare(option.Text)}, nil)
}

// takesAnother says whether words change something said before.
func takesAnother(ws []string) bool {
	for len(ws) > 0 && (ws[0] == "oh" || ws[0] == "ah" || ws[0] == "hm" || ws[0] == "no" || ws[0] == "ok" || ws[0] == "and" || ws[0] == "but") {
		ws = ws[1:]
	}
	for _, c := range changes {
		if len(ws) > len(c) && slices.Equal(ws[:len(c)], c) {
			return true
		}
	}
	return slices.ContainsFunc(ws, func(w string) bool { return nowWords[w] && w != "today" && w != "heute" && w != "hoy" })
}
