package lora

import (
	"slices"
	"strings"

	"github.com/askback/askback/gate"
)

// plainScore is the score of a plain case: the share of the training cases of
// that shape in which asking is right, rounded down (TestPlainIsPrecise
// measures it).
const plainScore = 0.85

// plain finds the passages among which a question plainly does not choose, by
// words alone: their headings say the same of different things ("Battery
// warranty: City 2", "Battery warranty: Cargo 2"), the question is about what
// the headings share, nothing in the dialogue names any of the things, and
// the dialogue holds no other word that could settle it. It is nil in nearly
// all cases; where it is not, asking is nearly always right, whatever the model
// thinks. The passages are given by index, in rank order.
func plain(r gate.Request) []int {
	if r.Stage != gate.Post || overviews.MatchString(r.Question) {
		return nil
	}
	d := newDialogue(r)
	titles, bodies := make([]map[string]bool, len(r.Passages)), make([]map[string]bool, len(r.Passages))
	for i, p := range r.Passages {
		titles[i] = content(p.Title)
		bodies[i] = union(titles[i], content(p.Text))
	}
	apart := func(i, j int) bool {
		return d.parallel(titles[i], titles[j]) && d.leftover(bodies[i], bodies[j]) == 0 &&
			!strings.EqualFold(r.Passages[i].Text, r.Passages[j].Text)
	}
	for j := range r.Passages {
		for i := range j {
			if !apart(i, j) {
				continue
			}
			stem := intersection(titles[i], titles[j])
			family := []int{i, j}
			for k := range r.Passages {
				if k != i && k != j && len(minus(stem, titles[k])) == 0 && apart(i, k) && apart(j, k) {
					family = append(family, k)
				}
			}
			slices.Sort(family)
			return family
		}
	}
	return nil
}

// dialogue is what the user said, as sets of content words.
type dialogue struct {
	ask  map[string]bool // the question
	past map[string]bool // the user's earlier turns
	said map[string]bool // both, and the assistant's turns
}

// idle are words that carry no subject: they settle nothing.
var idle = content("want know tell give look find need like many much long number price cost use work take go make day days time hi hello thanks thank question sorry wondering quick")

func newDialogue(r gate.Request) dialogue {
	d := dialogue{ask: content(r.Question), past: map[string]bool{}}
	for _, m := range r.History {
		if m.Role == "user" {
			d.past = union(d.past, content(m.Text))
		}
	}
	d.said = union(d.ask, content(historyText(r)))
	return d
}

// parallel reports whether two headings say the same of different things that
// the dialogue names neither of, and the question is about what they share.
func (d dialogue) parallel(a, b map[string]bool) bool {
	shared, onlyA, onlyB := intersection(a, b), minus(a, b), minus(b, a)
	return len(onlyA) > 0 && len(onlyB) > 0 && common(shared, d.ask) > 0 &&
		common(onlyA, d.said) == 0 && common(onlyB, d.said) == 0
}

// leftover counts the user's words that stand in neither of two passages'
// common words: each might settle which is meant.
func (d dialogue) leftover(a, b map[string]bool) int {
	both := union(intersection(a, b), idle)
	return len(minus(d.ask, both)) + len(minus(d.past, both))
}
