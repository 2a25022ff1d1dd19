// Package data_test checks the clarifier's data: its form, that no split knows
// another, and that its surface does not give the labels away.
package data_test

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type turn struct{ Role, Text string }

type passage struct{ ID, Title, Text, Answer, Condition string }

type option struct {
	Text     string
	Passages []string
}

type example struct {
	ID, Group, Domain string
	History           []turn
	Question          string
	Passages          []passage
	Pre, Post         *int
	SettledBy         []string `json:"settled_by"`
	Unclear           []string
	Kind              string
	Options           []option
	Clarification     string
	Answer            string
	Writer            string
	Second            *struct{ Pre, Post *int }
}

var splits = []string{"train", "validation", "calibration", "test"}

func read(t *testing.T, split string) []example {
	t.Helper()
	data, err := os.ReadFile(split + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []example
	in := json.NewDecoder(strings.NewReader(string(data)))
	in.DisallowUnknownFields()
	for in.More() {
		var c example
		if err := in.Decode(&c); err != nil {
			t.Fatalf("%s: case %d: %v", split, len(out)+1, err)
		}
		out = append(out, c)
	}
	return out
}

// askingKinds and clearKinds are the kinds of cases, by what a good assistant does.
var (
	askingKinds = strings.Fields("unresolved-reference missing-slot fragment garbled vague-scope multiple-readings entity-differs version-differs condition-differs time-differs definition-differs")
	clearKinds  = strings.Fields("resolved-by-history vague-but-one-answer passages-agree passages-differ-but-settled overview-or-comparison unanswerable short-but-clear ellipsis-follow-up already-clarified smalltalk")
)

func TestFormOfCases(t *testing.T) {
	for _, split := range splits {
		seen := map[string]bool{}
		for _, c := range read(t, split) {
			bad := func(format string, args ...any) { t.Errorf("%s %s: "+format, append([]any{split, c.ID}, args...)...) }
			if seen[c.ID] {
				bad("the id stands twice")
			}
			seen[c.ID] = true
			if c.Group == "" || c.Domain == "" || strings.TrimSpace(c.Question) == "" {
				bad("group, domain and question are needed")
			}
			if !slices.Contains(askingKinds, c.Kind) && !slices.Contains(clearKinds, c.Kind) {
				bad("kind %q is unknown", c.Kind)
			}
			for i, m := range c.History {
				if want := []string{"assistant", "user"}[(len(c.History)-1-i)%2]; m.Role != want {
					bad("turn %d is the %s's; turns alternate and end with the assistant", i, m.Role)
				}
			}
			ids := map[string]bool{}
			for _, p := range c.Passages {
				if p.ID == "" || ids[p.ID] {
					bad("passage id %q is empty or stands twice", p.ID)
				}
				ids[p.ID] = true
				if !strings.Contains(p.Text, p.Answer) && !strings.Contains(p.Title, p.Answer) {
					bad("passage %s: the answer %q does not stand in it", p.ID, p.Answer)
				}
				if !strings.Contains(p.Title+". "+p.Text, p.Condition) {
					bad("passage %s: the condition %q does not stand in it", p.ID, p.Condition)
				}
			}
			said := []string{c.Question}
			for _, m := range c.History {
				said = append(said, m.Text)
			}
			for _, m := range c.SettledBy {
				if m == "" || !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, m) }) {
					bad("settled_by %q does not stand in the dialogue", m)
				}
			}
			for _, m := range c.Unclear {
				if m == "" || !strings.Contains(c.Question, m) {
					bad("unclear %q does not stand in the question", m)
				}
			}
			for _, o := range c.Options {
				for _, id := range o.Passages {
					if !ids[id] {
						bad("option %q names the passage %q, which is not there", o.Text, id)
					}
				}
			}
			for _, label := range []*int{c.Pre, c.Post} {
				if label != nil && *label != 0 && *label != 1 {
					bad("a label is %d, want 0, 1 or null", *label)
				}
			}
			if c.Post != nil && *c.Post == 1 && c.Clarification == "" {
				bad("it asks without a clarification")
			}
			if split != "train" && c.Second == nil {
				bad("no second reader labelled it")
			}
		}
	}
}

func TestSplitsShareNothing(t *testing.T) {
	of := map[string]string{}
	for _, split := range splits {
		for _, c := range read(t, split) {
			for _, key := range []string{"id " + c.ID, "group " + c.Group, "domain " + c.Domain} {
				if was, ok := of[key]; ok && was != split {
					t.Errorf("%s is in %s and in %s", key, was, split)
				}
				of[key] = split
			}
		}
	}
}

var wordPattern = regexp.MustCompile(`[\p{L}\p{N}']+`)

func words(text string) []string { return wordPattern.FindAllString(strings.ToLower(text), -1) }

// shingles are the hashes of a case's runs of five words in question, history
// and passages.
func shingles(c example) map[uint64]bool {
	set := map[uint64]bool{}
	add := func(text string) {
		w := words(text)
		for i := 0; i+5 <= len(w); i++ {
			h := fnv.New64a()
			h.Write([]byte(strings.Join(w[i:i+5], " ")))
			set[h.Sum64()] = true
		}
	}
	add(c.Question)
	for _, m := range c.History {
		add(m.Text)
	}
	for _, p := range c.Passages {
		add(p.Text)
	}
	return set
}

// A near duplicate would let a model pass by memory: two cases of different
// groups share at most half of their five-word runs, and those of different
// splits a tenth.
func TestNoNearDuplicates(t *testing.T) {
	type place struct {
		split string
		c     example
	}
	var all []place
	var sets []map[uint64]bool
	holders := map[uint64][]int{}
	for _, split := range splits {
		for _, c := range read(t, split) {
			s := shingles(c)
			for h := range s {
				holders[h] = append(holders[h], len(all))
			}
			all, sets = append(all, place{split, c}), append(sets, s)
		}
	}
	for i, s := range sets {
		shared := map[int]int{}
		for h := range s {
			for _, j := range holders[h] {
				if j > i && all[i].c.Group != all[j].c.Group {
					shared[j]++
				}
			}
		}
		for j, n := range shared {
			limit := 0.5
			if all[i].split != all[j].split {
				limit = 0.1
			}
			// Sharing a passage alone is no duplicate: the question must be near too.
			least := min(len(s), len(sets[j]))
			if least >= 10 && float64(n) > limit*float64(least) && alike(all[i].c.Question, all[j].c.Question) > limit {
				t.Errorf("%s %s and %s %s share %d of %d runs of five words", all[i].split, all[i].c.ID, all[j].split, all[j].c.ID, n, least)
			}
		}
	}
}

// alike is the Jaccard index of two texts' words.
func alike(a, b string) float64 {
	x, y := map[string]bool{}, map[string]bool{}
	for _, w := range words(a) {
		x[w] = true
	}
	both := 0
	for _, w := range words(b) {
		if x[w] && !y[w] {
			both++
		}
		y[w] = true
	}
	return float64(both) / math.Max(1, float64(len(x)+len(y)-both))
}

// TestSurfaceGivesNothingAway trains simple baselines across folds by domain: what
// the question's words, lengths and counts, or the passages alone tell of gate
// 2's label must be little, or a model could learn that instead of reading.
func TestSurfaceGivesNothingAway(t *testing.T) {
	const limit = 0.60
	var cases []example
	for _, split := range splits {
		for _, c := range read(t, split) {
			if c.Post != nil && len(c.Passages) > 0 {
				cases = append(cases, c)
			}
		}
	}
	for name, features := range map[string]func(example) map[string]float64{
		"question words":     func(c example) map[string]float64 { return bag(c.Question) },
		"passages alone":     passageWords,
		"lengths and counts": lengths,
	} {
		if got := auc(cases, acrossFolds(cases, features)); got >= limit || got <= 1-limit {
			t.Errorf("%s: AUC %.3f at gate 2, want below %.2f", name, got, limit)
		} else {
			t.Logf("%s: AUC %.3f at gate 2", name, got)
		}
	}
}

func bag(text string) map[string]float64 {
	f := map[string]float64{}
	w := words(text)
	for i, x := range w {
		f[x] = 1
		if i > 0 {
			f[w[i-1]+" "+x] = 1
		}
	}
	return f
}

func passageWords(c example) map[string]float64 {
	f := map[string]float64{}
	for _, p := range c.Passages {
		for _, w := range words(p.Title + " " + p.Text) {
			f[w] = 1
		}
	}
	return f
}

func lengths(c example) map[string]float64 {
	history, text := 0, 0
	for _, m := range c.History {
		history += len(words(m.Text))
	}
	for _, p := range c.Passages {
		text += len(words(p.Text))
	}
	return map[string]float64{
		"question": math.Log1p(float64(len(words(c.Question)))), "history": math.Log1p(float64(history)),
		"turns": float64(len(c.History)), "passages": float64(len(c.Passages)), "text": math.Log1p(float64(text)),
	}
}

// acrossFolds gives each case a score by logistic regression trained on other
// domains: ten folds, gradient descent with a decaying rate and weight decay,
// each feature divided by its spread.
func acrossFolds(cases []example, features func(example) map[string]float64) []float64 {
	const folds, epochs = 10, 12
	fold := map[string]int{}
	domains := map[string]bool{}
	for _, c := range cases {
		domains[c.Domain] = true
	}
	for i, d := range slices.Sorted(maps.Keys(domains)) {
		fold[d] = i % folds
	}
	number := map[string]int{} // of a feature
	var mean, spread []float64
	type value struct {
		feature int
		v       float64
	}
	x := make([][]value, len(cases))
	for i, c := range cases {
		of := features(c)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			k, known := number[name]
			if !known {
				k = len(number)
				number[name] = k
				mean, spread = append(mean, 0), append(spread, 0)
			}
			v := of[name]
			x[i] = append(x[i], value{k, v})
			mean[k] += v / float64(len(cases))
			spread[k] += v * v / float64(len(cases))
		}
	}
	for k := range spread {
		spread[k] = max(math.Sqrt(max(spread[k]-mean[k]*mean[k], 1e-4)), .1)
	}
	for i := range x {
		for j, f := range x[i] {
			x[i][j].v = (f.v - mean[f.feature]) / spread[f.feature]
		}
	}
	scores := make([]float64, len(cases))
	weights := make([]float64, len(number))
	for f := range folds {
		clear(weights)
		bias := 0.0
		score := func(i int) float64 {
			z := bias
			for _, f := range x[i] {
				z += weights[f.feature] * f.v
			}
			return 1 / (1 + math.Exp(-z))
		}
		for e := range epochs {
			rate := 0.02 / float64(1+e)
			for n := range cases {
				i := (n * 7919) % len(cases) // the same order each time, not the file's
				if fold[cases[i].Domain] == f {
					continue
				}
				g := score(i) - float64(*cases[i].Post)
				bias -= rate * g
				for _, f := range x[i] {
					weights[f.feature] -= rate * (g*f.v + 1e-3*weights[f.feature])
				}
			}
		}
		for i, c := range cases {
			if fold[c.Domain] == f {
				scores[i] = score(i)
			}
		}
	}
	return scores
}

// auc is how often an asking case scores above a clear one.
func auc(cases []example, scores []float64) float64 {
	order := make([]int, len(cases))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case scores[a] < scores[b]:
			return -1
		case scores[a] > scores[b]:
			return 1
		}
		return 0
	})
	below, won, ones := 0.0, 0.0, 0.0
	for _, i := range order {
		if *cases[i].Post == 1 {
			won += below
			ones++
		} else {
			below++
		}
	}
	return won / (below * ones)
}
