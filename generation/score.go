package generation

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/retrieval"
)

// candidate is a unit of a passage with what speaks for it.
type candidate struct {
	unit
	passage int    // index in Request.Passages
	index   int    // index among the passage's units
	context string // what the line is read under: headings, the question before it, its list's lead-in
	vector  []float32
	own     []retrieval.Identifier // in the line; of this and the next only if the question names some
	around  []retrieval.Identifier // in context
	x       features
	p       float64 // that this unit answers the question
}

// features of a candidate, in the order of weights.
type features [16]float64

// Places of features that are read apart from their weights.
const (
	nearQuestion = 1
	nearDialogue = 2
	shared       = 4
	matched      = 6
	missed       = 7
)

// pointing matches words that stand for something said before.
var pointing = regexp.MustCompile(`(?i)\b(?:it|its|they|them|their|that|this|those|these|there|one|ones|other|both|he|she|him|his|her|then|so)\b`)

// evidence is the passages read in the light of a question.
type evidence struct {
	query       string // the question with the assumption
	want        want
	several     bool
	leans       bool // the question cannot be understood without the dialogue
	each        int  // passages that must each be answered from, 0 or over 1
	passages    []retrieval.Passage
	units       [][]unit // by passage
	all         []candidate
	stems       map[string]bool
	surest      *float64 // the highest score of a Reader's spans; nil without a Reader
	rarity      map[string]float64
	identifiers []retrieval.Identifier     // that the question names
	inUnits     [][][]retrieval.Identifier // by passage and unit, if the question names some
}

// read splits the passages and scores each unit against the question.
func read(ctx context.Context, e retrieval.Embedder, r Request) (*evidence, error) {
	r.Question = shorten(r.Question)
	if r.Asked != "" { // the rest was asked before
		r.History = append(slices.Clip(r.History), conversation.Message{Role: conversation.User, Text: r.Question})
		r.Question = shorten(r.Asked)
	}
	ev := &evidence{query: r.Question, passages: r.Passages}
	if r.Assumption != "" {
		ev.query += " (" + r.Assumption + ")"
	}
	ev.want, ev.several = wanted(r.Question), several.MatchString(r.Question)
	if r.Each > 1 {
		ev.several, ev.each = true, min(r.Each, len(r.Passages))
	}
	var all strings.Builder
	for _, p := range r.Passages {
		all.WriteString(p.Title + "\n" + p.Text + "\n")
	}
	ev.identifiers = asked(ev.query, all.String())
	var texts []string
	mayQuoteCommands := untrusted.AboutCommands(r.Question)
	for p, passage := range r.Passages {
		units := split(passage.Text)
		ev.units = append(ev.units, units)
		ev.scan(units)
		for i, u := range units {
			if u.kind == heading || asks(u) || !mayQuoteCommands && untrusted.Commands(passage.Text[u.start:u.end]) {
				continue
			}
			c := candidate{unit: u, passage: p, index: i, context: titleLine(passage.Title) + under(units, i)}
			if len(ev.identifiers) > 0 {
				c.own, c.around = ev.inUnits[p][i], retrieval.ScanIdentifiers(c.context)
			}
			ev.all = append(ev.all, c)
			texts = append(texts, c.context+c.line)
		}
	}
	if len(ev.all) == 0 {
		return ev, nil
	}
	vectors, err := e.EmbedDocuments(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embedding %d sentences to choose from: %w", len(texts), err)
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("embedding %d sentences: the embedder gave %d vectors", len(texts), len(vectors))
	}
	for i := range ev.all {
		ev.all[i].vector = vectors[i]
	}
	alone, err := e.EmbedQuery(ctx, ev.query)
	if err != nil {
		return nil, fmt.Errorf("embedding the question: %w", err)
	}
	inDialogue := alone
	if q := withHistory(r.History, ev.query); q != ev.query {
		if inDialogue, err = e.EmbedQuery(ctx, q); err != nil {
			return nil, fmt.Errorf("embedding the question with the dialogue: %w", err)
		}
	}
	ev.measure(r, alone, inDialogue)
	ev.leans = r.Asked != "" || len(ev.stems) <= 1 || pointing.MatchString(r.Question)
	return ev, nil
}

// longestQuestion is the number of bytes of a question that are read: more is
// a text that somebody pasted, with what is asked about it before or after it.
const longestQuestion = 4000

// shorten leaves the middle of a long text out.
func shorten(s string) string {
	if len(s) <= longestQuestion {
		return s
	}
	return strings.ToValidUTF8(s[:longestQuestion/2], "") + "\n" + strings.ToValidUTF8(s[len(s)-longestQuestion/2:], "")
}

// titleLine is the passage's headings as the start of a sentence.
func titleLine(title string) string {
	title = readable(strings.ReplaceAll(title, " > ", ": "))
	if title == "" {
		return ""
	}
	return title + ": "
}

// under gives what units[i] is read under inside its passage: the last heading,
// and a question or a lead-in that it follows.
func under(units []unit, i int) string {
	context := ""
	for h := i - 1; h >= 0; h-- {
		if u := units[h]; u.kind == heading && strings.HasPrefix(u.line, "#") {
			context = strings.Trim(u.line, "# ") + ": "
			break
		}
	}
	switch {
	case units[i].lead >= 0:
		context += units[units[i].lead].line + " "
	case i > 0 && asks(units[i-1]):
		context += units[i-1].line + " "
	}
	return context
}

// asks says whether a unit is a question, as in a list of questions and
// answers: context for what follows, no answer itself.
func asks(u unit) bool {
	return u.kind != code && (strings.HasSuffix(u.line, "?") || strings.HasSuffix(u.line, "？"))
}

// withHistory puts the last thing the user said before the question, which may
// lean on it.
func withHistory(history []conversation.Message, question string) string {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Role == conversation.User {
			return shorten(history[i].Text) + " " + question
		}
	}
	return question
}

// measure fills in the features of all candidates. The vectors are those of
// the question alone and with what was said before it.
func (ev *evidence) measure(r Request, alone, inDialogue []float32) {
	ev.stems = content(ev.query)
	ev.weigh()
	dialogue := map[string]bool{}
	for _, m := range r.History[max(0, len(r.History)-6):] {
		for s := range content(shorten(m.Text)) {
			if !ev.stems[s] {
				dialogue[s] = true
			}
		}
	}
	titles, texts := make([]map[string]bool, len(ev.passages)), make([]map[string]bool, len(ev.passages))
	for p, passage := range ev.passages {
		titles[p] = content(passage.Title)
		texts[p] = union(titles[p], content(passage.Text))
	}
	for i := range ev.all {
		c := &ev.all[i]
		own := content(c.line)
		full := union(own, content(c.context))
		match, miss := ev.fits(c.line)
		c.x = features{
			1,
			cosine(alone, c.vector),
			cosine(inDialogue, c.vector),
			ev.share(ev.stems, own),
			ev.share(ev.stems, full),
			ev.share(ev.stems, texts[c.passage]),
			match,
			miss,
			1 / float64(1+c.passage),
			place(c),
			size(c),
			ev.favoured(c.passage, titles),
			ev.share(dialogue, full),
			boolean(ev.several),
		}
	}
	best, bestH := 0.0, 0.0
	for _, c := range ev.all {
		best, bestH = max(best, c.x[1]), max(bestH, c.x[2])
	}
	for i := range ev.all {
		x := &ev.all[i].x
		x[14], x[15] = x[1]-best, x[2]-bestH
	}
	for i := range ev.all {
		ev.all[i].p = sigmoid(dot(weights, ev.all[i].x))
	}
}

// favoured compares a passage with those whose headings are nearly the same:
// 1 if the question names what sets it apart ("version 3"), -1 if it names
// what sets another apart, else 0.
func (ev *evidence) favoured(passage int, titles []map[string]bool) float64 {
	own := titles[passage]
	mine, theirs := false, false
	for p, other := range titles {
		shared := 0
		for s := range own {
			if other[s] {
				shared++
			}
		}
		if p == passage || 2*shared < max(len(own), len(other)) {
			continue
		}
		for s := range ev.stems {
			mine = mine || own[s] && !other[s]
			theirs = theirs || other[s] && !own[s]
		}
	}
	return boolean(mine) - boolean(theirs)
}

// place is how near its passage's start a sentence stands, from 1 down; in a
// list or a table it says nothing.
func place(c *candidate) float64 {
	if c.kind != prose {
		return 0.5
	}
	return 1 / float64(1+c.index)
}

// size is the length of a sentence; short ones seldom hold a whole answer, but
// items and rows are short by nature.
func size(c *candidate) float64 {
	n := len(strings.Fields(c.line))
	if c.kind != prose {
		n = max(n, 12)
	}
	return math.Log(float64(1+n)) / 4
}

// weigh gives each stem of the passages its rarity: a word that stands in all
// of them tells none apart.
func (ev *evidence) weigh() {
	n := float64(len(ev.all))
	ev.rarity = map[string]float64{}
	for _, c := range ev.all {
		for s := range content(c.context + c.line) {
			ev.rarity[s]++
		}
	}
	for s, f := range ev.rarity {
		ev.rarity[s] = math.Log(1 + n/f)
	}
}

// share is the part of want, by rarity, that have holds; 0 if want is empty.
func (ev *evidence) share(want, have map[string]bool) float64 {
	var sum, all float64
	unknown := math.Log(1 + float64(len(ev.all)))
	for s := range want {
		w, ok := ev.rarity[s]
		if !ok {
			w = unknown
		}
		all += w
		if have[s] {
			sum += w
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// fits says whether a sentence holds the kind of thing that is asked for: 1, 0
// if it does, 0, 1 if not, 0, 0 if the question asks for nothing particular.
func (ev *evidence) fits(line string) (match, miss float64) {
	re := gives[ev.want]
	if ev.want == wantMoney {
		line = spans.ReplaceAllString(line, " ")
	}
	switch {
	case re == nil:
		return 0, 0
	case re.MatchString(line):
		return 1, 0
	}
	return 0, 1
}

func union(sets ...map[string]bool) map[string]bool {
	all := map[string]bool{}
	for _, s := range sets {
		for k := range s {
			all[k] = true
		}
	}
	return all
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func dot(a, b features) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// cosine of two vectors; 0 if one of them is zero or their lengths differ.
func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// weights of the features, by logistic regression on the authored cases that
// can be answered: does this sentence hold the words marked as the answer?
// The weight of the place in the passage is set lower than fitted, since
// people's own documents are not written answer first.
var weights = features{-4.27, 0.06, 1.31, 1.19, 0.59, -0.67, 0.42, -0.66, 0.3, 1.2, 2.07, 1, 0.82, 0, 5.55, 5.95}
