package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reader reads a reply that the rules are not sure of, as the embedded reader of
// package reply and a language model can. The pending clarification and the reply
// are data to it; rules is what the rules took the reply for. All calls may come at
// the same time.
type Reader interface {
	Read(ctx context.Context, p Pending, reply string, rules Folded) (Reading, error)
}

// Reading is what a Reader took a reply for.
type Reading struct {
	Kind    ReplyKind `json:"kind"`
	Options []string  `json:"options"` // ids of the options meant or ruled out
	Detail  string    `json:"detail"`  // what the reply says besides, in its own words
	Unsure  bool      `json:"-"`       // another Reader may know better
}

// FoldWith is Fold with Readers for what the rules are unsure of: words of the
// user's own that name no option, questions by their form alone, replies that say
// nothing to the rules. The first Reader that is sure decides, or else the last. A
// Reading that cannot be (an unknown kind, an option that is not offered, words that
// the reply does not hold) is left aside, as is a Reader that fails; if none is left,
// the rules and m have decided. One that agrees with the rules changes nothing.
func FoldWith(ctx context.Context, p Pending, reply string, m Matcher, readers ...Reader) (Folded, error) {
	got, err := Fold(ctx, p, reply, m)
	if err != nil || got.certain() {
		return got, err
	}
	out := got
	for _, r := range readers {
		limited, cancel := context.WithTimeout(ctx, readLimit)
		read, err := r.Read(limited, p, reply, got)
		cancel()
		if ctx.Err() != nil {
			return Folded{}, fmt.Errorf("folding a reply into its question: %w", ctx.Err())
		}
		if err != nil {
			continue
		}
		f, ok := newFolder(p, reply).taken(read)
		if !ok {
			continue
		}
		out = f
		if f.Kind == got.Kind && slices.EqualFunc(f.Chosen, got.Chosen, func(a, b Option) bool { return a.ID == b.ID }) {
			out = got
		}
		if !read.Unsure {
			break
		}
	}
	return out, nil
}

// readLimit is how long a Reader may take.
const readLimit = 10 * time.Second

// certain says whether a rule decided that has proved right on replies that no rule
// was made on.
func (f Folded) certain() bool { return certainRules[f.Rule] || f.Kind == ReplyDontKnow }

var certainRules = map[string]bool{
	"word for word": true, "ordinal": true, "range": true, "comparison": true, "proposal": true, "now": true,
	"yes": true, "no": true, "yes or no": true, "yes to several": true, noSuchOption: true, "cancel": true, "restated": true,
}

// taken folds as a Reader says, if that can be.
func (f *folder) taken(r Reading) (Folded, bool) {
	var is []int
	for _, id := range r.Options {
		i := slices.IndexFunc(f.p.Options, func(o Option) bool { return o.ID == id })
		if i < 0 {
			return Folded{}, false
		}
		is = union(is, []int{i})
	}
	slices.Sort(is)
	said := " " + key(f.reply) + " "
	var extra []string
	if d := bare(tidy(r.Detail)); d != "" && key(d) != "" {
		if !strings.Contains(said, " "+key(d)+" ") {
			return Folded{}, false // not the user's words
		}
		extra = []string{cut(d, detailRunes)}
	}
	const rule = "reader"
	n := len(f.opts)
	out := Folded{Kind: r.Kind, Question: f.p.Question, Rule: rule}
	switch r.Kind {
	case ReplyChoice, ReplySeveral, ReplyAll:
		if r.Kind == ReplyAll && len(is) == 0 {
			is = upTo(n)
		}
		if len(is) == 0 {
			return Folded{}, false
		}
		return f.chosen(kindOf(len(is), n), is, extra, rule), true
	case ReplyNone:
		if n == 0 {
			return Folded{}, false
		}
		out := f.none(is, extra, map[act]bool{actNone: len(is) == 0})
		out.Rule = rule
		return out, true
	case ReplyDetail:
		if len(extra) == 0 {
			extra = []string{bare(cut(f.reply, detailRunes))}
		}
		if extra[0] == "" {
			return Folded{}, false
		}
		out.Question, out.Detail = compose(f.p, f.lang, nil, extra), inWords(extra)
		return out, true
	case ReplyJustAnswer, ReplyDontKnow:
		out = f.assume(r.Kind, extra)
		out.Rule = rule
		return out, true
	case ReplyExplain:
		out = f.explain(is)
		out.Rule = rule
		return out, true
	case ReplyUnclear:
		return f.unclear(is, rule), true
	case ReplyCancel:
		out.Say = say(f.lang, sayCancel)
		return out, true
	case ReplyNewQuestion:
		out.Question = f.whole
		return out, key(f.whole) != ""
	}
	return Folded{}, false
}
