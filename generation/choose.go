package generation

import (
	"regexp"
	"sort"
	"strings"
)

var (
	// leans matches a sentence that cannot be understood without the one before it.
	leans = regexp.MustCompile(`^(?i:it|its|they|their|them|this|these|those|that|he|she|his|her|such|both|neither|otherwise|however|but|then|in (?:that|this|these|those|both) cases?|if so|if not|the same|the latter|the former|also|instead|after that|afterwards|in addition|yes|no)\b`)
	// limits matches a sentence that limits the one before it.
	limits = regexp.MustCompile(`^(?i:except|exceptions?|unless|only|however|but|otherwise|if not|not (?:for|if|when|on|in)|this (?:does|do|is|applies|also)|provided|in that case|the exception|excluded)\b`)
)

// choose gives the units that make up the answer, in the order to be said, or
// none if the best is less probable than least.
func (ev *evidence) choose(least float64, room int) []pick {
	ranked := ev.ranked()
	if len(ranked) == 0 || ev.confidence(ranked[0]) < least {
		return nil
	}
	b := builder{ev: ev, room: room, taken: map[pick]bool{}}
	if ev.each > 1 {
		b.room = max(room, 40*ev.each)
		b.addEach(ranked)
		return b.picks
	}
	best := ev.likeliest(ranked)
	units := ev.units[best.passage]
	switch next := best.index + 1; {
	case next < len(units) && units[next].lead == best.index: // it introduces a list
		b.addList(best.passage, next)
		return b.picks
	case ev.want == wantSteps && best.kind == item:
		b.addList(best.passage, best.index)
		return b.picks
	}
	if ev.several {
		b.overview(ranked)
		return b.picks
	}
	b.add(best)
	if c, ok := ev.complement(best); ok {
		b.add(c)
	}
	for _, c := range ranked {
		if len(b.picks) >= 4 {
			break
		}
		// Rows, and what stands under another heading or question, are about something else.
		near := c.passage == best.passage && c.context == best.context && c.kind != row
		switch {
		case near && c.p > nearShare*best.p:
		case !near && c.p > farShare*best.p:
		default:
			continue
		}
		if ev.repeats(c, b.picks) || b.dangles(c) {
			continue
		}
		b.add(c)
	}
	return b.ordered()
}

// How probable a further unit must be, as a share of the best one.
const (
	nearShare   = 0.25 // beside it
	farShare    = 0.8  // elsewhere
	spreadShare = 0.2  // the first of another passage, in an overview
)

// ranked gives the candidates that may answer, the most probable first.
func (ev *evidence) ranked() []candidate {
	var out []candidate
	for _, c := range ev.all {
		if ev.named(c) {
			out = append(out, c)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].p > out[j].p })
	return out
}

// complement gives the likeliest unit near c that holds the kind of thing that
// is asked for, an amount say, if c itself does not.
func (ev *evidence) complement(c candidate) (best candidate, ok bool) {
	if c.x[missed] == 0 {
		return c, false
	}
	for _, o := range ev.all {
		if d := o.index - c.index; o.passage == c.passage && o.context == c.context && d >= -2 && d <= 2 && o.x[matched] == 1 && o.p > best.p && ev.named(o) {
			best, ok = o, true
		}
	}
	return best, ok
}

// repeats says whether c says what a pick says already.
func (ev *evidence) repeats(c candidate, picks []pick) bool {
	for _, o := range ev.all {
		for _, p := range picks {
			if o.passage == p.passage && o.index == p.index && c.kind != row && cosine(o.vector, c.vector) > 0.92 && len(content(c.line)) <= len(content(o.line))+3 {
				return true
			}
		}
	}
	return false
}

// builder gathers picks within the room for words.
type builder struct {
	ev     *evidence
	room   int
	words  int
	picks  []pick
	groups []int // where each added group starts
	taken  map[pick]bool
}

// addEach takes the likeliest unit of each of the first passages, in their
// order.
func (b *builder) addEach(ranked []candidate) {
	for passage := range b.ev.each {
		for _, c := range ranked {
			if c.passage == passage {
				if full, ok := b.ev.complement(c); ok {
					c = full
				}
				b.add(c)
				break
			}
		}
	}
}

// add takes a candidate with the sentences that it cannot do without: what it
// leans on before it, what limits it after it.
func (b *builder) add(c candidate) {
	units := b.ev.units[c.passage]
	from, to := c.index, c.index
	var lead []pick
	if b.usable(c.passage, c.lead) {
		lead = []pick{{c.passage, c.lead}}
	}
	for from > 0 && c.index-from < 2 && units[from].kind == prose && leans.MatchString(units[from].line) && units[from-1].kind != row && b.usable(c.passage, from-1) {
		from--
	}
	for to+1 < len(units) && to-c.index < 2 && units[to+1].kind == prose && limits.MatchString(units[to+1].line) && b.usable(c.passage, to+1) {
		to++
	}
	if to+1 < len(units) && units[to+1].kind == code && strings.HasSuffix(units[to].line, ":") {
		to++
	}
	group := lead
	for i := from; i <= to; i++ {
		group = append(group, pick{c.passage, i})
	}
	words, fresh := 0, group[:0:0]
	for _, p := range group {
		if !b.taken[p] {
			fresh = append(fresh, p)
			words += len(strings.Fields(units[p.index].line))
		}
	}
	if len(b.picks) > 0 && b.words+words > b.room || len(fresh) == 0 {
		return
	}
	b.groups = append(b.groups, len(b.picks))
	b.picks = append(b.picks, fresh...)
	b.words += words
	for _, p := range fresh {
		b.taken[p] = true
	}
}

// usable says whether a unit may be quoted beside its neighbour.
func (b *builder) usable(passage, index int) bool {
	if index < 0 {
		return false
	}
	u := b.ev.units[passage][index]
	if u.kind == heading || u.kind == code || asks(u) {
		return false
	}
	for _, c := range b.ev.all {
		if c.passage == passage && c.index == index {
			return true
		}
	}
	return false
}

// dangles says whether a candidate leans on something that cannot be shown
// before it.
func (b *builder) dangles(c candidate) bool {
	return c.kind == prose && leans.MatchString(c.line) && !b.usable(c.passage, c.index-1)
}

// overview takes the best of each passage that comes near the best of all, and
// of a table or list all its rows.
func (b *builder) overview(ranked []candidate) {
	best := b.ev.likeliest(ranked)
	if k := best.kind; k == row || k == item {
		b.addList(best.passage, best.index)
	} else {
		b.add(best)
	}
	seen := map[int]bool{best.passage: true}
	for range 5 {
		var rest []candidate
		for _, c := range ranked {
			if !seen[c.passage] && c.p > spreadShare*best.p {
				rest = append(rest, c)
			}
		}
		if len(rest) == 0 {
			return
		}
		c := b.ev.likeliest(rest)
		seen[c.passage] = true
		if !b.ev.repeats(c, b.picks) && !b.dangles(c) {
			b.add(c)
		}
	}
}

// likeliest gives the first of the ranked that holds the kind of thing that is
// asked for and is nearly as probable as the first of all.
func (ev *evidence) likeliest(ranked []candidate) candidate {
	for _, c := range ranked {
		if c.x[missed] == 0 && c.p > 0.5*ranked[0].p {
			return c
		}
	}
	return ranked[0]
}

// addList takes the whole list or table that a unit is of, in its order. Steps
// are worth nothing with one missing, so it may have twice the room.
func (b *builder) addList(passage, index int) {
	units := b.ev.units[passage]
	lead, first := units[index].lead, index
	for first > 0 && units[first-1].kind == units[index].kind && units[first-1].lead == lead {
		first--
	}
	if b.usable(passage, lead) {
		b.picks = append(b.picks, pick{passage, lead})
	}
	for i := first; i < len(units) && units[i].kind == units[index].kind && units[i].lead == lead; i++ {
		b.words += len(strings.Fields(units[i].line))
		if b.words > 2*b.room {
			break
		}
		if b.usable(passage, i) {
			b.picks = append(b.picks, pick{passage, i})
		}
	}
}

// ordered puts the first group first and brings the rest into the order of
// their passages.
func (b *builder) ordered() []pick {
	if len(b.groups) < 3 {
		return b.tidy(b.picks)
	}
	rest := b.picks[b.groups[1]:]
	order := map[int]int{b.picks[0].passage: 0}
	for _, p := range rest {
		if _, ok := order[p.passage]; !ok {
			order[p.passage] = len(order)
		}
	}
	sort.SliceStable(rest, func(i, j int) bool {
		if rest[i].passage != rest[j].passage {
			return order[rest[i].passage] < order[rest[j].passage]
		}
		return rest[i].index < rest[j].index
	})
	return b.tidy(b.picks)
}

// tidy reads lists and rows in their own order.
func (b *builder) tidy(picks []pick) []pick {
	for _, p := range picks {
		if k := b.ev.units[p.passage][p.index].kind; p.passage != picks[0].passage || k != item && k != row {
			return picks
		}
	}
	sort.Slice(picks, func(i, j int) bool { return picks[i].index < picks[j].index })
	return picks
}

// confidence says how sure it is that the passages hold the answer, from 0 to
// 1, so scaled that one answerable question in twelve lies below 0.5. By
// logistic regression on authored questions without a dialogue: ones that can
// be answered against ones that cannot, most of these made by taking away the
// passages with the answer. A code that is asked for and stands in the
// sentence is worth more than any of it. What is near the dialogue counts only for
// a question that leans on it: another one is not answered by what was talked about. A Reader has half the say.
func (ev *evidence) confidence(best candidate) float64 {
	near := 0.0
	for _, c := range ev.all {
		if near = max(near, c.x[nearQuestion]); ev.leans {
			near = max(near, c.x[nearDialogue])
		}
	}
	own := sigmoid(-2.44 + 0.33*dot(weights, best.x) + 7.14*near + 1.5*best.x[shared] + 2*boolean(ev.namesIdentifier(best)))
	if ev.surest != nil {
		return (own + *ev.surest) / 2
	}
	return own
}

// mark raises the candidates that hold words a Reader marked.
func (ev *evidence) mark(spans []Span) {
	surest := 0.0
	for _, s := range spans {
		score := min(1, max(0, s.Score))
		for i := range ev.all {
			c := &ev.all[i]
			if c.passage != s.Passage || c.start >= s.End || s.Start >= c.end {
				continue
			}
			c.p = 1 - (1-c.p)*(1-score)
			surest = max(surest, score)
			if score > 0.5 {
				c.x[missed] = 0
			}
		}
	}
	ev.surest = &surest
}
