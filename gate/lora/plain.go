package lora

import (
	"regexp"
	"slices"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/retrieval"
)

// plainScore is the score of a plain case: the share of the training cases of
// that shape in which asking is right, rounded down (TestPlainIsPrecise
// measures it).
const plainScore = 0.84

// alikeBodies is how much of their words two passages must share to say the
// same of different things, as a Jaccard index.
const alikeBodies = 0.08

// plain finds the passages among which a question plainly does not choose, by
// words alone: their headings say the same of different things ("Battery
// warranty: City 2", "Battery warranty: Cargo 2") and their texts are alike,
// the user's words stand in both, nothing in the dialogue names any of the
// things or holds other words that could settle it, and no other passage's
// heading fits the question better. It is nil in nearly all cases; where it is
// not, asking is nearly always right, whatever the model thinks. The passages
// are given by index, in rank order.
func plain(r gate.Request) []int {
	if r.Stage != gate.Post || overviews.MatchString(r.Question) || yesNo.MatchString(r.Question) {
		return nil
	}
	d := newDialogue(r)
	titles, bodies := make([]heading, len(r.Passages)), make([]map[string]bool, len(r.Passages))
	for i, p := range r.Passages {
		titles[i] = newHeading(p.Title)
		bodies[i] = union(titles[i].all, content(p.Text))
	}
	apart := func(i, j int) bool {
		if !d.parallel(titles[i], titles[j]) || jaccard(bodies[i], bodies[j]) < alikeBodies ||
			strings.EqualFold(r.Passages[i].Text, r.Passages[j].Text) {
			return false
		}
		asked := minus(d.ask, idle)
		return len(asked) > 0 && !titles[i].otherTopic(titles[j]) &&
			len(d.leftover(bodies, i, j)) == 0 && !sameSentence(asked, r.Passages[i].Text, r.Passages[j].Text)
	}
	for j := range r.Passages {
		for i := range j {
			if !apart(i, j) {
				continue
			}
			stem := intersection(titles[i].last, titles[j].last)
			family := []int{i, j}
			for k := range r.Passages {
				if k != i && k != j && len(minus(stem, titles[k].last)) == 0 && apart(i, k) && apart(j, k) {
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

// yesNo begins a question that is answered by yes or no: passages that differ
// otherwise mostly agree on it.
var yesNo = regexp.MustCompile(`(?i)^\W*(and |so |hi |hello |ok )*(are|is|am|can|could|do|does|did|may|must|will|would|should|have|has|was|were)\b`)

// betterElsewhere reports whether a passage outside the family has more of the
// question's words in its heading than the family's headings share.
func (d dialogue) betterElsewhere(stem map[string]bool, family []int, titles []heading) bool {
	for k, t := range titles {
		if !slices.Contains(family, k) && common(t.last, d.ask) > common(stem, d.ask) {
			return true
		}
	}
	return false
}

// dialogue is what the user said, as sets of content words.
type dialogue struct {
	ask  map[string]bool // the question
	past map[string]bool // the user's earlier turns
	open map[string]bool // of these, the words that the reply to them did not take up
	said map[string]bool // all turns, the assistant's too
}

// idle are words that carry no subject: they settle nothing.
var idle = content("want know tell give look find need like many much long number price cost use work take go make day days time hi hello thanks thank question sorry wondering quick")

func newDialogue(r gate.Request) dialogue {
	d := dialogue{ask: content(r.Question), past: map[string]bool{}, open: map[string]bool{}}
	for i, m := range r.History {
		if m.Role != conversation.User {
			continue
		}
		words := content(m.Text)
		d.past = union(d.past, words)
		if i+1 < len(r.History) {
			words = minus(words, content(r.History[i+1].Text))
		}
		d.open = union(d.open, words)
	}
	d.said = union(titleWords(r.Question), content(historyText(r)))
	return d
}

// heading holds the content words of a passage's title.
type heading struct {
	last  map[string]bool // of the heading that the passage stands under
	all   map[string]bool // and of those above it
	topic string          // what stands before the colon, "" without one
}

func newHeading(title string) heading {
	last := lastHeading(title)
	topic, _, ok := strings.Cut(last, ":")
	if !ok {
		topic = ""
	}
	return heading{titleWords(last), titleWords(title), strings.ToLower(strings.TrimSpace(topic))}
}

// apart gives what two headings share and what each has alone.
func (h heading) apart(o heading) (shared, mine, theirs map[string]bool) {
	return intersection(h.last, o.last), minus(h.last, o.all), minus(o.last, h.all)
}

// parallel reports whether two headings say the same of different things that
// the dialogue names neither of.
func (d dialogue) parallel(a, b heading) bool {
	shared, onlyA, onlyB := a.apart(b)
	alike := a.topic != "" && a.topic == b.topic || 2*len(shared) >= min(len(a.last), len(b.last))
	return alike && len(shared) > 0 && len(onlyA) > 0 && len(onlyB) > 0 &&
		common(onlyA, d.said) == 0 && common(onlyB, d.said) == 0
}

// parallels tells for each pair of passages whether their headings are
// parallel and of one topic, and that topic is what is asked about: both hold
// most of the question's words, and no other heading has more of them.
func parallels(r gate.Request) [][]bool {
	d := newDialogue(r)
	asked := minus(d.ask, idle)
	headings, bodies := make([]heading, len(r.Passages)), make([]map[string]bool, len(r.Passages))
	for i, p := range r.Passages {
		headings[i] = newHeading(p.Title)
		bodies[i] = union(headings[i].all, content(p.Text))
	}
	out := make([][]bool, len(r.Passages))
	for i := range out {
		out[i] = make([]bool, len(r.Passages))
		for j := range i {
			stem := intersection(headings[i].last, headings[j].last)
			out[i][j] = d.parallel(headings[i], headings[j]) && !headings[i].otherTopic(headings[j]) &&
				2*common(asked, intersection(bodies[i], bodies[j])) > len(asked) &&
				!d.betterElsewhere(stem, []int{i, j}, headings)
			out[j][i] = out[i][j]
		}
	}
	return out
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

// leftover are the user's words that are not among the common words of
// passages i and j: each might settle which is meant. Words of an earlier
// question that was answered in the same words, or that another passage is
// about, are done with.
func (d dialogue) leftover(bodies []map[string]bool, i, j int) map[string]bool {
	both := union(intersection(bodies[i], bodies[j]), idle)
	earlier := minus(d.open, both)
	for k, b := range bodies {
		if k != i && k != j {
			earlier = minus(earlier, b)
		}
	}
	return union(minus(d.ask, both), earlier)
}

var sentenceEnd = regexp.MustCompile(`[.!?]\s+|\n+|[。！？]`)

// sameSentence reports whether the sentence of a that has most of the words
// asked for stands in b too: then the passages agree.
func sameSentence(asked map[string]bool, a, b string) bool {
	best, most := "", 0
	for _, s := range sentenceEnd.Split(a, -1) {
		if n := common(content(s), asked); n > most {
			best, most = s, n
		}
	}
	return best != "" && strings.Contains(b, best)
}

// otherTopic reports whether two headings say different things, rather than
// the same of different things: what stands before the colon differs.
func (h heading) otherTopic(o heading) bool { return h.topic != o.topic }

// ruledOut finds the passages that the dialogue leaves aside, by words alone:
// their heading says the same as another's of a different thing, and the user
// named the other thing and not theirs.
func ruledOut(r gate.Request) []string {
	d := newDialogue(r)
	user := union(titleWords(r.Question), d.past)
	var out []string
	for i, p := range r.Passages {
		mine := newHeading(p.Title)
		if slices.ContainsFunc(r.Passages, func(q retrieval.Passage) bool {
			theirs := newHeading(q.Title)
			shared, onlyMine, onlyTheirs := mine.apart(theirs)
			return len(shared) > 0 && !mine.otherTopic(theirs) && len(onlyMine) > 0 && len(onlyTheirs) > 0 &&
				common(onlyMine, user) == 0 && len(minus(onlyTheirs, user)) == 0
		}) {
			out = append(out, r.Passages[i].ID)
		}
	}
	return out
}
