package conversation

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ReplyKind says what a reply to a clarification is.
type ReplyKind string

// The kinds of replies to a clarification.
const (
	ReplyChoice      ReplyKind = "choice"         // one of the options
	ReplySeveral     ReplyKind = "several"        // more than one of them
	ReplyAll         ReplyKind = "all"            // every one of them
	ReplyNone        ReplyKind = "none"           // none of them, or not this one
	ReplyDetail      ReplyKind = "detail"         // in the user's own words
	ReplyJustAnswer  ReplyKind = "just_answer"    // answer without it
	ReplyDontKnow    ReplyKind = "dont_know"      // the user does not know
	ReplyExplain     ReplyKind = "explain"        // asks what the clarification means
	ReplyNewQuestion ReplyKind = "new_question"   // about something else
	ReplyCancel      ReplyKind = "cancel"         // the question is taken back
	ReplyUnclear     ReplyKind = "unclear_choice" // fits several options alike, or says nothing
)

// Folded is a reply, understood.
type Folded struct {
	Kind ReplyKind `json:"kind"`

	// Question is the question to go on with: the pending one with what was
	// learnt, standing on its own. It is the pending question unchanged if
	// nothing was learnt, and the reply itself if Kind is ReplyNewQuestion.
	Question string `json:"question"`

	// Chosen are the options meant: by a choice, several or all; the ones that
	// an unclear choice hovers between; the ones that ReplyExplain asks about.
	Chosen []Option `json:"chosen,omitempty"`

	// Excluded are the options that the user ruled out.
	Excluded []Option `json:"excluded,omitempty"`

	// Detail is what was said in the user's own words, besides a choice or
	// instead of one, as it stands in Question.
	Detail string `json:"detail,omitempty"`

	// Also is a question of its own that came with a choice, "City. And when do you
	// open?". It stands in Question too, as a detail.
	Also string `json:"also,omitempty"`

	// Assume tells to answer now and to state the assumption made.
	Assume bool `json:"assume,omitempty"`

	// Say is what to show, in the language of the conversation, if Kind is
	// ReplyExplain, ReplyUnclear or ReplyCancel: no question is to be answered.
	Say string `json:"say,omitempty"`

	// Rule names the rule that decided, for the trace.
	Rule string `json:"rule"`
}

// Matcher says how alike texts are in meaning, as an encoder's cosine does.
type Matcher interface {
	// Similarity gives, for each text of b, its similarity to a: 1 for the same
	// meaning, about 0 for none. All calls may come at the same time.
	Similarity(ctx context.Context, a string, b []string) ([]float64, error)
}

const (
	readRunes   = 2000 // how much of a reply is read to understand it
	detailRunes = 1000 // how much of a detail goes into the question
)

// Fold understands a reply to the pending clarification and folds it into the
// question that the clarification belongs to. The package's documentation
// holds the table of its rules. m may be nil; if it fails, the rules decide
// alone. The only error is that of a ctx that has ended.
func Fold(ctx context.Context, p Pending, reply string, m Matcher) (Folded, error) {
	if err := ctx.Err(); err != nil {
		return Folded{}, fmt.Errorf("folding a reply into its question: %w", err)
	}
	f := newFolder(p, reply)
	f.m = m
	out := f.fold(ctx)
	if err := ctx.Err(); err != nil {
		return Folded{}, fmt.Errorf("folding a reply into its question: %w", err)
	}
	return out, nil
}

// FoldChoice folds a click on the option of that id. An id that the
// clarification does not offer is an error: it belongs to another one, perhaps
// to one that is already settled.
func FoldChoice(p Pending, optionID string) (Folded, error) {
	i := slices.IndexFunc(p.Options, func(o Option) bool { return o.ID == optionID })
	if i < 0 {
		ids := make([]string, len(p.Options))
		for i, o := range p.Options {
			ids[i] = fmt.Sprintf("%q", o.ID)
		}
		offer := "it offers no options; reply in words"
		if len(ids) > 0 {
			offer = "it offers " + strings.Join(ids, ", ")
		}
		return Folded{}, fmt.Errorf("choosing option %q of clarification %q: there is no such option; %s", optionID, p.ID, offer)
	}
	f := newFolder(p, "")
	return f.chosen(ReplyChoice, []int{i}, nil, "click"), nil
}

// folder holds what the rules look at.
type folder struct {
	p       Pending
	reply   string // cleaned, and cut to what is read
	whole   string // cleaned
	lang    string
	m       Matcher
	opts    []optionWords
	vocab   []string        // the content words of the pending question, its clarification and options
	letters map[string]bool // single letters that tell options apart: "plan S", "plan M"
	common  map[string]bool // option words that every option has: they choose nothing
}

// tellTales says whether the options are numbered in Roman numerals, and which
// single letters tell them apart: those of options that are alike otherwise.
func tellTales(options []Option) (roman bool, letters map[string]bool) {
	rest := map[string]int{}
	for _, o := range options {
		ws := plains(o.Text)
		roman = roman || slices.Contains(ws, "ii")
		rest[strings.Join(content(ws), " ")]++
	}
	letters = map[string]bool{}
	for _, o := range options {
		ws := plains(o.Text)
		if rest[strings.Join(content(ws), " ")] < 2 {
			continue
		}
		for _, w := range ws {
			if len(w) <= 2 && w[0] >= 'a' && w[0] <= 'z' {
				letters[w] = true
			}
		}
	}
	return roman, letters
}

// numbered writes Roman numerals in digits.
func numbered(ws []string, roman bool) []string {
	if !roman {
		return ws
	}
	ws = slices.Clone(ws)
	for i, w := range ws {
		for n, r := range []string{"i", "ii", "iii", "iv", "v"} {
			if w == r && i > 0 {
				ws[i] = string(rune('1' + n))
			}
		}
	}
	return ws
}

func lettersOf(ws []string, letters map[string]bool) (out []string) {
	for _, w := range ws {
		if letters[w] && len(content([]string{w})) == 0 {
			out = append(out, w)
		}
	}
	return out
}

type optionWords struct {
	key     string
	content []string
	joined  []string // neighbours written as one: "bm200" for "BM-200"
	gloss   []string // what the clarification says of this option alone: "full-time (28 days)"
}

func newFolder(p Pending, reply string) *folder {
	p = p.clone()
	p.clean()
	f := &folder{p: p, whole: tidy(reply)}
	f.reply = cut(f.whole, readRunes)
	f.lang = language(p.Question+" "+p.Text, f.reply)
	f.common = map[string]bool{}
	count := map[string]int{}
	roman, letters := tellTales(p.Options)
	f.letters = letters
	for _, o := range p.Options {
		w := optionWords{key: key(o.Text)}
		all := numbered(strings.Fields(w.key), roman)
		w.content = append(content(all), lettersOf(all, letters)...)
		if len(w.content) == 0 {
			w.content = all
		}
		for i := 1; i < len(all); i++ {
			if len(content(all[i-1:i+1])) < 2 && !isNumber(all[i]) && len(all[i-1]) != 1 {
				continue
			}
			w.joined = append(w.joined, all[i-1]+all[i])
		}
		slices.Sort(w.content)
		w.content = slices.Compact(w.content)
		f.opts = append(f.opts, w)
		f.vocab = append(f.vocab, w.content...)
		for _, c := range w.content {
			count[c]++
		}
	}
	for c, n := range count {
		if n == len(p.Options) && n > 1 {
			f.common[c] = true
		}
	}
	f.glosses()
	f.vocab = append(f.vocab, content(plains(p.Question))...)
	f.vocab = append(f.vocab, content(plains(p.Text))...)
	f.vocab = append(f.vocab, content(plains(strings.Join(p.Unclear, " ")))...)
	return f
}

// glosses finds what the clarification says of one option alone: the words that
// follow it in a stretch of its text that names just that one.
func (f *folder) glosses() {
	ws := words(f.p.Text)
	from := 0
	stretch := func(to int) {
		if is, tie := f.match(ws[from:to]); len(is) == 1 && !tie {
			o := &f.opts[is[0]]
			last := from
			for i := from; i < to; i++ {
				if o.has(ws[i].plain) {
					last = i
				}
			}
			for _, w := range content(forms(ws[last:to])) {
				if !o.has(w) {
					o.gloss = append(o.gloss, w)
				}
			}
		}
		from = to
	}
	for i := range ws {
		if i > 0 && (strings.ContainsAny(f.p.Text[ws[i-1].end:ws[i].start], ",;:.?!，；：。？！、।") || orWords[ws[i].plain]) {
			stretch(i)
		}
	}
	stretch(len(ws))
	// A word that glosses several options tells none apart.
	for i := range f.opts {
		f.opts[i].gloss = slices.DeleteFunc(slices.Clone(f.opts[i].gloss), func(w string) bool {
			for j, o := range f.opts {
				if j != i && (slices.Contains(o.gloss, w) || slices.Contains(o.content, w)) {
					return true
				}
			}
			return f.inQuestion(w)
		})
	}
}

// byGloss gives the one option of which the clarification says what ws say.
func (f *folder) byGloss(ws []word) int {
	found := -1
	for _, w := range content(forms(ws)) {
		for i, o := range f.opts {
			if slices.ContainsFunc(o.gloss, func(g string) bool { return likeness(w, g) >= 0.8 }) {
				if found >= 0 && found != i {
					return -1
				}
				found = i
			}
		}
	}
	return found
}

// fold runs the rules over the parts of the reply and combines what they found.
func (f *folder) fold(ctx context.Context) Folded {
	all := part{words: words(f.reply), text: f.reply}
	for core := all; ; {
		if i := f.exact(core.String()); i >= 0 {
			return f.chosen(ReplyChoice, []int{i}, nil, "word for word")
		}
		shorter := strip(core, lexicon().fillers)
		if len(shorter.words) == len(core.words) || len(core.words) > 40 {
			break
		}
		core = shorter
	}
	if i := f.exact(f.reply); i >= 0 { // an option without words
		return f.chosen(ReplyChoice, []int{i}, nil, "word for word")
	}
	if len(all.words) == 0 {
		return f.wordless()
	}
	if f.restated() {
		return f.restatement()
	}
	if r := f.redirect(); r != "" {
		return Folded{Kind: ReplyNewQuestion, Question: f.whole, Rule: r}
	}

	// One pass over the parts. Later parts correct earlier ones ("the first,
	// no, the second"), and what is no rule's is kept as a detail.
	var (
		got, out, between, about []int
		kept                     extras
		seen                     = map[act]bool{}
		rule                     string
		strong, sure, corrected  bool
		askedFirst, endsAsking   bool
		lastAct                  act
		also                     string
	)
	for _, p := range f.parts() {
		r := f.read(p)
		if len(got) > 0 && (r.act == actChoose || r.act == actBetween || r.act == actAll) && (f.corrects(p) || corrected) {
			got, rule = nil, "" // "Premium, I mean Standard"
		}
		corrected = takesBack(p)
		if corrected && r.act == actDetail {
			continue // "the 1, I mean, the 3"
		}
		switch r.act {
		case actFiller:
			continue
		case actNo:
			got, rule = nil, ""
		case actQuestion:
			if len(kept) > 0 && (f.refersBack(p) || len(f.opts) == 0 && f.says(p) == 0) {
				r.act = actDetail // "it's a cat, does that change anything?"
			}
		case actExplain:
			if len(kept) > 0 && f.refersBack(p) {
				r.act = actDetail
			}
		case actDetail:
			if seen[actDetail] && len(got) == 0 && f.asksBare(p) {
				r.act = actQuestion // "I want rid of it. How?"
			}
		}
		if rule == "" || r.act == actChoose {
			rule = r.rule
		}
		if r.act == actQuestion && p.asks && len(p.words) > 3 && (len(got) > 0 || seen[actAll]) {
			also = p.String() + "?"
		}
		seen[r.act] = true
		sure = sure || r.act == actQuestion && !r.unsure
		switch r.act {
		case actChoose:
			got = union(got, r.options)
			strong = strong || !r.weak
		case actExclude:
			out = union(out, r.options)
		case actBetween:
			between = union(between, r.options)
		case actExplain:
			about = union(about, r.options)
		}
		askedFirst = askedFirst || r.act == actExplain && len(got) == 0 && !seen[actChoose]
		lastAct, endsAsking = r.act, p.asks
		kept.add(r)
		if r.act == actChoose && len(got) > 1 && orWords[p.words[0].plain] {
			between, got = got, nil // "the van, or maybe the minibus"
		}
	}
	if i := f.nowSaid(); i >= 0 && len(got)+len(between) > 1 && !seen[actQuestion] {
		return f.chosen(ReplyChoice, []int{i}, nil, "now")
	}
	if n := len(got); n > 0 && slices.Equal(got, out) { // "a Ferro 500 but without steam"
		got, out, kept, seen[actDetail], seen[actExclude] = nil, nil, extras{{extra: stripAll(all, lexicon().frames)}}, true, false
	}
	got = slices.DeleteFunc(got, func(i int) bool { return slices.Contains(out, i) })
	n := len(f.opts)
	if n == 1 && len(got) == 1 && seen[actNo] && rule == "text" && !covers(content(forms(all.words)), f.opts[0].content) {
		got, kept, seen[actNone] = nil, extras{{extra: stripAll(f.afterNo(all), lexicon().frames)}}, true // "no, the car policy"
	}
	f.weigh(ctx, all, seen, sure, len(got)+len(between))
	if len(got) == 1 && !strong && rule == "text" && f.byChance(all.words, f.opts[got[0]]) {
		got, kept, seen[actDetail] = nil, extras{{extra: stripAll(all, lexicon().frames)}}, true
	}
	if seen[actExplain] && seen[actQuestion] && whyWords[all.words[0].plain] {
		seen[actQuestion] = false // "why, are the hours different?"
	}
	if seen[actDontKnow] && len(got) > 1 { // "maybe lake? maybe ridge? dunno"
		between, got = got, nil
	}
	if askedFirst && len(got) > 0 && endsAsking { // "what do you mean, a business?"
		between, about, got = nil, got, nil
	}
	if n == 0 && lastAct == actDetail && !endsAsking && (seen[actExplain] || seen[actDontKnow]) { // "isn't it obvious? the sauna"
		seen[actExplain], seen[actDontKnow] = false, false
	}
	extra := kept.texts(actBetween, len(got) == 0)
	yes, no := f.affirmed()

	switch {
	case len(got) > 0 && (strong || !seen[actQuestion]):
		return f.chosen(kindOf(len(got), n), got, extra, rule).with(also)
	case seen[actAll] && n > 1 && !seen[actNo]:
		return f.chosen(kindOf(n, n), upTo(n), extra, "all").with(also)
	case seen[actQuestion]:
		return Folded{Kind: ReplyNewQuestion, Question: f.whole, Rule: "question"}
	case seen[actExplain] && seen[actJustAnswer]: // "why do you ask? just answer"
		return f.assume(ReplyJustAnswer, extra)
	case seen[actExplain]:
		return f.explain(about)
	case seen[actAll] && n > 0:
		return f.chosen(kindOf(n, n), upTo(n), extra, "all")
	case seen[actNo] && no >= 0 && !seen[actNone] && !seen[actCancel]:
		return f.chosen(ReplyChoice, []int{no}, extra, "no")
	case seen[actYes] && yes >= 0 && !seen[actNone] && !seen[actExclude] && !seen[actCancel]:
		return f.chosen(ReplyChoice, []int{yes}, extra, "yes")
	case seen[actNo] && n > 0 && !seen[actNone] && !seen[actExclude] && !seen[actCancel] && f.yesOrNo():
		return f.detailInContext("no") // "Have you learnt Italian before?"
	case seen[actNone], seen[actExclude], seen[actNo] && n > 0 && !seen[actCancel]:
		return f.none(out, extra, seen)
	case seen[actCancel]:
		return Folded{Kind: ReplyCancel, Question: f.p.Question, Say: say(f.lang, sayCancel), Rule: "cancel"}
	case seen[actJustAnswer]:
		return f.assume(ReplyJustAnswer, extra)
	case len(between) > 0 && len(between) < n: // "Basic or Plus, not sure"
		return f.unclear(between, "between")
	case seen[actDontKnow]:
		return f.assume(ReplyDontKnow, extra)
	case seen[actDetail]:
		return f.detail(ctx, extra)
	case len(between) > 0:
		return f.unclear(between, "between")
	case n == 0 && (seen[actYes] || seen[actNo] || seen[actAll] || seen[actSelect]):
		return f.detailInContext(rule)
	case seen[actYes]:
		return f.unclear(upTo(n), "yes to several")
	case seen[actSelect]:
		return f.unclear(nil, noSuchOption)
	}
	if strings.ContainsAny(f.reply, "?？") { // "sorry?"
		return f.explain(nil)
	}
	return f.unclear(nil, "says nothing")
}

// The similarities of a statement to the dialogue from which it belongs to it,
// and below which it is about something else.
const (
	belongs = 0.4
	astray  = 0.3
)

// weigh lets the Matcher say whether a statement is about something else: "my
// card was stolen" is to a question about fees, and is not to one about theft.
func (f *folder) weigh(ctx context.Context, all part, seen map[act]bool, sure bool, chosen int) {
	asks := seen[actQuestion] && !sure
	if f.m == nil || f.lang != "en" || chosen > 0 || !asks && !(seen[actDetail] && !seen[actNo] && !seen[actNone] && !seen[actYes] && f.foreignSubject(all.words)) {
		return
	}
	texts := []string{f.p.Question, f.p.Text}
	for _, o := range f.p.Options {
		texts = append(texts, o.Text)
	}
	sims, err := f.m.Similarity(ctx, all.String(), texts)
	if err != nil || len(sims) != len(texts) {
		return
	}
	switch most := slices.Max(sims); {
	case asks && most >= belongs:
		seen[actQuestion], seen[actDetail] = false, true
	case !asks && most < astray:
		seen[actQuestion] = true
	}
}

// afterNo gives what follows the "no" at the beginning of a reply.
func (f *folder) afterNo(p part) part {
	for len(p.words) > 1 && lexicon().whole[p.words[0].plain] == actNo {
		p = p.with(p.words[1:])
	}
	return p
}

var whyWords = wordSet("why warum wieso weshalb pourquoi porque क्यों kyun kyu")

// extras are the parts of a reply that are kept as details, each with the
// filler after it that leads to the next.
type extras []reading

func (e *extras) add(r reading) { *e = append(*e, r) }

// texts gives the details as written; neighbours stay together. The parts of
// which an option was almost read count only if with.
func (e extras) texts(almost act, with bool) []string {
	var s []string
	var run part
	detail := false // a real one is there
	for _, r := range e {
		detail = detail || len(r.extra.words) > 0 && r.act != almost
	}
	flush := func() {
		if len(run.words) > 0 {
			s = append(s, bare(run.String()))
		}
		run = part{}
	}
	for _, r := range e {
		if len(r.extra.words) == 0 || r.act == almost && !(with && detail) {
			flush()
			continue
		}
		if len(run.words) > 0 && r.act != actChoose {
			run.words = append(slices.Clone(run.words), r.extra.words...)
			continue
		}
		flush()
		run = r.extra
	}
	flush()
	return s
}

func union(a, b []int) []int {
	for _, i := range b {
		if !slices.Contains(a, i) {
			a = append(a, i)
		}
	}
	return a
}

// assume answers without what was asked for, and keeps what was said instead.
func (f *folder) assume(kind ReplyKind, extra []string) Folded {
	r := Folded{Kind: kind, Question: f.p.Question, Detail: inWords(extra), Assume: true, Rule: "phrase"}
	if len(extra) > 0 {
		r.Question = compose(f.p, f.lang, nil, extra)
	}
	return r
}

// inWords is a detail as it is kept.
func inWords(extra []string) string { return cut(strings.Join(extra, "; "), detailRunes) }

func kindOf(chosen, options int) ReplyKind {
	switch {
	case chosen == 1:
		return ReplyChoice
	case chosen == options:
		return ReplyAll
	}
	return ReplySeveral
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func (f *folder) pick(is []int) []Option {
	var os []Option
	for _, i := range is {
		os = append(os, f.p.Options[i].clone())
	}
	return os
}

func (o Option) clone() Option {
	o.Passages = slices.Clone(o.Passages)
	return o
}

func (f *folder) chosen(kind ReplyKind, is []int, extra []string, rule string) Folded {
	if kind != ReplyChoice {
		is = slices.Sorted(slices.Values(is))
	}
	texts := make([]string, len(is))
	for i, o := range is {
		texts[i] = bare(f.p.Options[o].Text)
	}
	return Folded{Kind: kind, Question: compose(f.p, f.lang, texts, extra), Detail: inWords(extra), Chosen: f.pick(is), Rule: rule}
}

// with gives f with a question that came with it.
func (f Folded) with(also string) Folded {
	f.Also = also
	return f
}

// none answers "none of these", with what was said instead if anything was. If
// all but one option are ruled out, that one is the choice.
func (f *folder) none(out []int, extra []string, seen map[act]bool) Folded {
	n := len(f.opts)
	if seen[actNone] || len(out) == 0 {
		out = upTo(n)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if left := n - len(out); n > 1 && left == 1 && len(extra) == 0 {
		for i := range n {
			if !slices.Contains(out, i) {
				r := f.chosen(ReplyChoice, []int{i}, nil, "the other one")
				r.Excluded = f.pick(out)
				return r
			}
		}
	}
	r := Folded{Kind: ReplyNone, Detail: inWords(extra), Excluded: f.pick(out), Rule: "none"}
	switch {
	case n == 0 && len(extra) > 0:
		return Folded{Kind: ReplyDetail, Question: compose(f.p, f.lang, nil, extra), Detail: inWords(extra), Rule: "detail"}
	case n == 0:
		return f.detailInContext("none")
	case len(extra) > 0:
		r.Question, r.Rule = compose(f.p, f.lang, nil, extra), "none, with a detail"
	default:
		texts := make([]string, len(out))
		for i, o := range out {
			texts[i] = bare(f.p.Options[o].Text)
		}
		r.Question = aside(f.p.Question, say(f.lang, sayNot)+" "+strings.Join(texts, ", "))
	}
	return r
}

// The bounds from which a Matcher decides: how alike the reply and the option
// are, and by how much more than any other. An encoder is less sure outside
// English.
const (
	similarEnough = 0.5
	similarMargin = 0.12
	foreignEnough = 0.7
	foreignMargin = 0.2
)

// partOfAnother says whether all words of an option stand in another one, as
// "employed" in "self-employed": similarity cannot tell those apart.
func (f *folder) partOfAnother(i int) bool {
	for j, o := range f.opts {
		if j != i && len(o.content) > len(f.opts[i].content) && covers(o.content, f.opts[i].content) {
			return true
		}
	}
	return false
}

// guarded tells of a detail that no similarity can decide: it denies something,
// or holds a number that no option has ("I have the Ferro 700").
func (f *folder) guarded(extra []string) bool {
	for _, w := range plains(strings.Join(extra, " ")) {
		if negations[w] || failsNot[w] || w == "dont" || calendar[w] || strings.ContainsAny(w, "0123456789") && !f.hasNumber(w) {
			return true
		}
	}
	return false
}

// detail folds in the user's own words, unless the Matcher knows the option
// that they mean.
func (f *folder) detail(ctx context.Context, extra []string) Folded {
	if f.m != nil && len(f.opts) > 1 && !f.guarded(extra) {
		texts := make([]string, len(f.opts))
		for i, o := range f.p.Options {
			texts[i] = o.Text
		}
		said := strings.Join(extra, "; ")
		if sims, err := f.m.Similarity(ctx, said, texts); err == nil && len(sims) == len(texts) {
			best, second := -1, -1.0
			for i, s := range sims {
				if best < 0 || s > sims[best] {
					if best >= 0 {
						second = max(second, sims[best])
					}
					best = i
				} else {
					second = max(second, s)
				}
			}
			enough, margin := similarEnough, similarMargin
			if f.lang != "en" {
				enough, margin = foreignEnough, foreignMargin
			}
			if sims[best] >= enough && sims[best]-second >= margin && !f.partOfAnother(best) {
				return f.chosen(ReplyChoice, []int{best}, extra, "similarity")
			}
		}
	}
	return Folded{Kind: ReplyDetail, Question: compose(f.p, f.lang, nil, extra), Detail: inWords(extra), Rule: "detail"}
}

// detailInContext folds in a reply that means nothing without the
// clarification that it answers: "yes", "the second" to a question without
// options.
func (f *folder) detailInContext(rule string) Folded {
	return Folded{Kind: ReplyDetail, Question: aside(f.p.Question, f.p.Text+" "+bare(cut(f.reply, detailRunes))), Detail: bare(cut(f.reply, detailRunes)), Rule: rule}
}

// noSuchOption is the rule by which "9" is unclear where there are two options.
const noSuchOption = "no such option"

// unclear says what is not clear of a reply: which of some options is meant, or all of it.
func (f *folder) unclear(between []int, rule string) Folded {
	r := Folded{Kind: ReplyUnclear, Question: f.p.Question, Chosen: f.pick(between), Rule: rule}
	if len(between) > 0 {
		texts := make([]string, len(between))
		for i, o := range between {
			texts[i] = bare(f.p.Options[o].Text)
		}
		r.Say = fmt.Sprintf(say(f.lang, sayWhich), join(f.lang, texts, false))
	} else {
		why := say(f.lang, sayAgain)
		if rule == noSuchOption {
			why = fmt.Sprintf(say(f.lang, sayFewer), len(f.p.Options))
		}
		r.Say = strings.TrimSpace(why + " " + f.p.Text)
	}
	return r
}

// explain says what the clarification asks for, without the text of passages,
// which this package does not have: whoever has it can add it by Chosen.
func (f *folder) explain(about []int) Folded {
	r := Folded{Kind: ReplyExplain, Question: f.p.Question, Chosen: f.pick(about), Rule: "explain"}
	switch {
	case len(f.opts) == 0 && len(f.p.Unclear) > 0:
		r.Say = fmt.Sprintf(say(f.lang, sayOpenWords), strings.Join(f.p.Unclear, ", "), f.p.Text)
	case len(f.opts) == 0:
		r.Say = fmt.Sprintf(say(f.lang, sayOpen), f.p.Text)
	default:
		texts := make([]string, len(f.opts))
		for i, o := range f.p.Options {
			texts[i] = bare(o.Text)
		}
		r.Say = fmt.Sprintf(say(f.lang, sayOptions), join(f.lang, texts, false))
	}
	r.Say = strings.TrimSpace(r.Say)
	return r
}

// exact gives the option whose text the reply is, word for word, or -1.
func (f *folder) exact(text string) int {
	k := key(text)
	if k == "" {
		k = strings.TrimSpace(text) // an option without words, such as an emoji
		return slices.IndexFunc(f.p.Options, func(o Option) bool { return k != "" && strings.TrimSpace(o.Text) == k })
	}
	found := -1
	for i, o := range f.opts {
		if o.key == k {
			if found >= 0 {
				return -1 // twins: no text tells them apart
			}
			found = i
		}
	}
	return found
}

// wordless reads a reply without a letter or digit.
func (f *folder) wordless() Folded {
	switch {
	case strings.ContainsAny(f.reply, "👍👌✅"):
		if len(f.opts) == 0 {
			return f.detailInContext("yes or no")
		}
		if yes, _ := f.affirmed(); yes >= 0 {
			return f.chosen(ReplyChoice, []int{yes}, nil, "yes")
		}
		return f.unclear(upTo(len(f.opts)), "yes to several")
	case strings.ContainsAny(f.reply, "👎❌"):
		if len(f.opts) == 0 {
			return f.detailInContext("yes or no")
		}
		if _, no := f.affirmed(); no >= 0 {
			return f.chosen(ReplyChoice, []int{no}, nil, "no")
		}
		return f.none(nil, nil, map[act]bool{actNone: true})
	case strings.ContainsAny(f.reply, "🤷"):
		return Folded{Kind: ReplyDontKnow, Question: f.p.Question, Assume: true, Rule: "don't know"}
	}
	if strings.Trim(f.reply, "?？¿! ") == "" && f.reply != "" && strings.ContainsAny(f.reply, "?？") {
		return f.explain(nil)
	}
	return f.unclear(nil, "says nothing")
}

// tidy gives a text as valid UTF-8 on one line, without control characters and
// outer blanks.
func tidy(s string) string {
	s = WithoutEscapes(s)
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFEFF' || r == '\u200b' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// WithoutEscapes gives a text without a terminal's codes, as for colours, keys and
// the window's title (ECMA-48).
func WithoutEscapes(s string) string { return escapes.ReplaceAllString(s, "") }

var escapes = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]`)

// cut gives the first n characters of s, ending at the end of a word if that is
// near.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	i := 0
	for range n {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	if j := strings.LastIndexByte(s[:i], ' '); j > i-40 && j > 0 {
		i = j
	}
	return s[:i] + "…"
}
