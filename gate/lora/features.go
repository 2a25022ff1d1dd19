package lora

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/kljensen/snowball/english"

	"github.com/askback/askback/gate"
)

// Feature is one number that the decision rests on.
type Feature struct {
	Name  string
	Value float64
}

var (
	wordPattern   = regexp.MustCompile(`[\p{L}\p{N}]+(?:[-.'’][\p{L}\p{N}]+)*`)
	clitic        = regexp.MustCompile(`['’](s|t|re|ve|ll|m|d)$`)
	numberPattern = regexp.MustCompile(`\d+(?:[.,:]\d+)*`)
	pronouns      = regexp.MustCompile(`(?i)\b(it|its|that|this|those|these|them|they|one|ones|there|he|she|him|her|same|other|another|thing|stuff)\b`)
	overviews     = regexp.MustCompile(`(?i)\b(compare|comparison|difference|differences|differ|overview|list|all|each|every|both|versus|vs|options|types|kinds|summar\w*|across|respective\w*|which|by (type|kind|country|currency|class|plan|region|model|grade|year|age))\b`)
	interrogative = regexp.MustCompile(`(?i)\b(what|when|where|who|whom|which|why|how|is|are|do|does|did|can|could|will|would|should|may|have|has|tell|show|explain|need|want)\b`)
)

var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("a an the of for to in on at by with from and or but is are was were be been being do does did have has had i you we they he she it my your our their this that these those there here what which who whom when where why how can could should would will may might must not no yes if then than so as up out about into over after before under again until more most any some such only own too very just don now me us them him her its also per t s re ve ll m d please get") {
		m[w] = true
	}
	return m
}()

// content gives the set of a text's content words, lower-case and stemmed.
func content(text string) map[string]bool {
	m := map[string]bool{}
	for _, w := range wordPattern.FindAllString(strings.ToLower(text), -1) {
		w = clitic.ReplaceAllString(w, "")
		if !stopWords[w] {
			m[english.Stem(w, false)] = true
		}
	}
	return m
}

// features are the numbers that the decision at a gate rests on, in a fixed
// order. training/decision.py fits a logistic regression to them.
func features(r gate.Request, x reading) []Feature {
	if r.Stage == gate.Pre {
		return preFeatures(r, x)
	}
	return postFeatures(r, x)
}

func preFeatures(r gate.Request, x reading) []Feature {
	words := wordPattern.FindAllString(r.Question, -1)
	ask := content(r.Question)
	past := content(historyText(r))
	pronoun := boolean(pronouns.MatchString(r.Question))
	noHistory := boolean(len(r.History) == 0)
	return []Feature{
		{"gate1", x.gate1},
		{"unclear", highest(x.unclear)},
		{"settled", highest(x.settled)},
		{"pronoun", pronoun},
		{"pronoun without history", pronoun * noHistory},
		{"no history", noHistory},
		{"few words", boolean(len(words) <= 4)},
		{"few content words", boolean(len(ask) <= 1)},
		{"few content words without history", boolean(len(ask) <= 2) * noHistory},
		{"log words", math.Log1p(float64(len(words)))},
		{"log content words", math.Log1p(float64(len(ask)))},
		{"no question word", boolean(!interrogative.MatchString(r.Question))},
		{"shared with history", share(ask, past)},
		{"number", boolean(numberPattern.MatchString(r.Question))},
	}
}

func postFeatures(r gate.Request, x reading) []Feature {
	a, b := x.topPair()
	ask := content(r.Question)
	said := content(historyText(r) + " " + r.Question)
	var live, answers []float64
	for _, p := range x.passages {
		live, answers = append(live, logit(p.live)), append(answers, logit(p.answers))
	}
	slices.SortFunc(live, descending)
	slices.SortFunc(answers, descending)
	f := []Feature{
		{"gate2", x.gate2},
		{"gate1", x.gate1},
		{"unclear", highest(x.unclear)},
		{"settled", highest(x.settled)},
		{"live 1", at(live, 0)}, {"live 2", at(live, 1)}, {"live 3", at(live, 2)},
		{"answers 2", at(answers, 1)},
		{"overview", boolean(overviews.MatchString(r.Question))},
		{"or", boolean(strings.Contains(strings.ToLower(r.Question), " or "))},
		{"pronoun", boolean(pronouns.MatchString(r.Question))},
		{"log words", math.Log1p(float64(len(wordPattern.FindAllString(r.Question, -1))))},
		{"history", boolean(len(r.History) > 0)},
		{"number asked", boolean(numberPattern.MatchString(r.Question))},
	}
	pair := []Feature{
		{Name: "conflict", Value: missing}, {Name: "pair live", Value: missing},
		{Name: "titles alike"}, {Name: "titles set apart"}, {Name: "title said of one"}, {Name: "title said of both"},
		{Name: "condition said of one"}, {Name: "condition said of both"}, {Name: "condition said of neither"},
		{Name: "answers alike"}, {Name: "numbers differ"}, {Name: "numbers agree"},
		{Name: "asked words covered"}, {Name: "covered by both"}, {Name: "text said of one"},
		{Name: "parallel"}, {Name: "leftover"}, {Name: "parallel without leftover"}, {Name: "better elsewhere"},
	}
	if a >= 0 {
		p, q := r.Passages[a], r.Passages[b]
		pr, qr := x.passages[a], x.passages[b]
		tp, tq := content(p.Title), content(q.Title)
		onlyP, onlyQ := minus(tp, tq), minus(tq, tp)
		saidP, saidQ := common(onlyP, said), common(onlyQ, said)
		cp, cq := content(pr.condition.text), content(qr.condition.text)
		condP, condQ := common(minus(cp, cq), said), common(minus(cq, cp), said)
		bp, bq := content(p.Title+" "+p.Text), content(q.Title+" "+q.Text)
		ap, aq := content(pr.answer.text), content(qr.answer.text)
		np, nq := numbers(pr.answer.text), numbers(qr.answer.text)
		textP, textQ := common(minus(bp, bq), said), common(minus(bq, bp), said)
		d := newDialogue(r)
		parallel, leftover := x.parallel[a][b], len(d.leftover([]map[string]bool{bp, bq}, 0, 1))
		headings := make([]heading, len(r.Passages))
		for i, p := range r.Passages {
			headings[i] = newHeading(p.Title)
		}
		better := d.betterElsewhere(intersection(headings[a].last, headings[b].last), []int{a, b}, headings)
		values := []float64{
			logit(x.conflict[a][b]), min(logit(pr.live), logit(qr.live)),
			jaccard(tp, tq), boolean(len(onlyP) > 0 && len(onlyQ) > 0 && len(tp) > len(onlyP)),
			boolean((saidP > 0) != (saidQ > 0)), boolean(saidP > 0 && saidQ > 0),
			boolean((condP > 0) != (condQ > 0)), boolean(condP > 0 && condQ > 0),
			boolean(condP+condQ == 0 && len(cp)+len(cq) > 0),
			jaccard(ap, aq), boolean(len(np) > 0 && len(nq) > 0 && common(np, nq) == 0), boolean(common(np, nq) > 0),
			share(ask, union(bp, bq)), share(ask, intersection(bp, bq)),
			math.Abs(float64(textP-textQ)) / float64(textP+textQ+1),
			boolean(parallel), math.Log1p(float64(leftover)), boolean(parallel && leftover <= 2), boolean(better),
		}
		for i, v := range values {
			pair[i].Value = v
		}
	}
	return append(f, pair...)
}

// topPair is the pair of passages most likely in conflict, weighed by whether
// both are still possible and by whether their headings are parallel; -1 if
// there are fewer than two passages.
func (x reading) topPair() (a, b int) {
	a, b, best := -1, -1, -1.0
	for i := range x.passages {
		for j := range i {
			s := x.clash(i, j)
			if x.parallel[i][j] {
				s *= 2
			}
			if s > best {
				a, b, best = j, i, s
			}
		}
	}
	return a, b
}

// clash is how strongly two passages compete, 0 to 1.
func (x reading) clash(i, j int) float64 {
	return x.conflict[i][j] * math.Sqrt(x.passages[i].live*x.passages[j].live)
}

func historyText(r gate.Request) string {
	var b strings.Builder
	for _, m := range r.History {
		b.WriteString(m.Text)
		b.WriteByte(' ')
	}
	return b.String()
}

func highest(ms []mark) float64 {
	h := 0.0
	for _, m := range ms {
		h = max(h, m.high)
	}
	return h
}

func logit(p float64) float64 { return math.Log(max(p, 1e-6)) - math.Log(max(1-p, 1e-6)) }

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func at(x []float64, i int) float64 {
	if i < len(x) {
		return max(x[i], missing)
	}
	return missing
}

func descending(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

func numbers(text string) map[string]bool {
	m := map[string]bool{}
	for _, n := range numberPattern.FindAllString(text, -1) {
		m[n] = true
	}
	return m
}

func minus(a, b map[string]bool) map[string]bool {
	m := map[string]bool{}
	for w := range a {
		if !b[w] {
			m[w] = true
		}
	}
	return m
}

func intersection(a, b map[string]bool) map[string]bool { return minus(a, minus(a, b)) }

func union(a, b map[string]bool) map[string]bool {
	m := map[string]bool{}
	for _, s := range []map[string]bool{a, b} {
		for w := range s {
			m[w] = true
		}
	}
	return m
}

// common is how many words two sets share.
func common(a, b map[string]bool) int { return len(intersection(a, b)) }

// share is the part of a's words that stand in b; 0 for an empty a.
func share(a, b map[string]bool) float64 {
	return float64(common(a, b)) / float64(len(a)+1)
}

func jaccard(a, b map[string]bool) float64 {
	if len(a)+len(b) == 0 {
		return 0
	}
	return float64(common(a, b)) / float64(len(union(a, b)))
}
