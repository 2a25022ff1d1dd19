package lora

import (
	"regexp"
	"slices"
	"strings"

	"github.com/askback/askback/gate"
)

// plainScore is the score of a plain case: the share of the training cases of
// that shape in which asking is right, rounded down (TestPlainIsPrecise
// measures it).
const plainScore = 0.85

// alikeBodies is how much of their words two passages must share to say the
// same of different things, as a Jaccard index.
const alikeBodies = 0.12

// plain finds the passages among which a question plainly does not choose, by
// words alone: their headings say the same of different things ("Battery
// warranty: City 2", "Battery warranty: Cargo 2") and their texts are alike,
// the user's words stand in both, nothing in the dialogue names any of the
// things or holds other words that could settle it, and no other passage's
// heading fits the question better. It is nil in nearly all cases; where it is
// not, asking is nearly always right, whatever the model thinks. The passages
// are given by index, in rank order.
func plain(r gate.Request) []int {
	if r.Stage != gate.Post || overviews.MatchString(r.Question) {
		return nil
	}
	d := newDialogue(r)
	titles, bodies := make([]map[string]bool, len(r.Passages)), make([]map[string]bool, len(r.Passages))
	for i, p := range r.Passages {
		titles[i] = titleWords(lastHeading(p.Title))
		bodies[i] = union(titleWords(p.Title), content(p.Text))
	}
	apart := func(i, j int) bool {
		if !d.parallel(titles[i], titles[j]) || jaccard(bodies[i], bodies[j]) < alikeBodies ||
			strings.EqualFold(r.Passages[i].Text, r.Passages[j].Text) {
			return false
		}
		// One word of the user's own is let pass where the headings are what the
		// question is about.
		left := d.leftover(bodies[i], bodies[j])
		asked := len(minus(d.ask, idle))
		return left == 0 || left == 1 && 2*common(intersection(titles[i], titles[j]), d.ask) >= asked
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
			if d.betterElsewhere(stem, family, titles) {
				return nil
			}
			slices.Sort(family)
			return family
		}
	}
	return nil
}

// betterElsewhere reports whether a passage outside the family has more of the
// question's words in its heading than the family's headings share.
func (d dialogue) betterElsewhere(stem map[string]bool, family []int, titles []map[string]bool) bool {
	for k, t := range titles {
		if !slices.Contains(family, k) && common(t, d.ask) > common(stem, d.ask) {
			return true
		}
	}
	return false
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
	d.said = union(titleWords(r.Question), content(historyText(r)))
	return d
}

// parallel reports whether two headings say the same of different things that
// the dialogue names neither of.
func (d dialogue) parallel(a, b map[string]bool) bool {
	shared, onlyA, onlyB := intersection(a, b), minus(a, b), minus(b, a)
	return len(shared) > 0 && len(onlyA) > 0 && len(onlyB) > 0 &&
		common(onlyA, d.said) == 0 && common(onlyB, d.said) == 0
}

// lastHeading is the heading that a passage stands under, without those above
// it: those are shared by passages about quite other things.
func lastHeading(title string) string {
	return title[strings.LastIndex(title, " > ")+1:]
}

// titleWords are a heading's content words and the small words that set
// headings apart: before and after, with and without.
func titleWords(title string) map[string]bool {
	words := content(title)
	for _, w := range smallWords.FindAllString(strings.ToLower(title), -1) {
		words[w] = true
	}
	return words
}

var smallWords = regexp.MustCompile(`\b(before|after|during|until|from|with|without|in|out|over|under|up|down|not|no|more|own|other)\b`)

// leftover counts the user's words that stand in neither of two passages'
// common words: each might settle which is meant.
func (d dialogue) leftover(a, b map[string]bool) int {
	both := union(intersection(a, b), idle)
	return len(minus(d.ask, both)) + len(minus(d.past, both))
}
