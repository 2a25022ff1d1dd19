package local

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

// depth is the least number of places of each ranking that are fused.
const depth = 100

// question is a query made ready: its texts, the best first, and perhaps the
// context after them, with the vector of each.
type question struct {
	texts   []string
	vectors [][]float32
	context bool // the last text is the context
	filter  map[string]string
}

// asking gives the texts without the context.
func (q question) asking() []string {
	if q.context {
		return q.texts[:len(q.texts)-1]
	}
	return q.texts
}

// newQuestion takes the texts of a query. It has none if none of them says
// anything.
func newQuestion(q retrieval.Query) question {
	texts := prepare.Texts(q.Texts)
	all := prepare.Texts(append(slices.Clone(texts), q.Context))
	if len(texts) == 0 {
		return question{}
	}
	return question{texts: all, context: len(all) > len(texts), filter: q.Filter}
}

// ranked is how the passages stand to one text of a query, by slot.
type ranked struct {
	cosines, bm25 []float32
}

// search finds hits, best first.
//
// For each text the passages are ranked by cosine and by BM25; all rankings are
// fused, those of the i-th text with weight 1/i, those of the context with its
// own. Passages that hold an identifier of the texts come first, and those that
// hold only neighbours of it are left out. Of passages with the same text one is
// given.
func (m *memory) search(q question, limit, perDocument int) []retrieval.Hit {
	limit = min(limit, m.live)
	if limit <= 0 {
		return nil
	}
	present := func(slot int32) bool {
		return m.entries[slot] != nil && matches(m.entries[slot].passage.Metadata, q.filter)
	}
	asked := m.ask(m.wanted(q.asking()))
	leftOut := asked.left(present)
	allowed := func(slot int32) bool { return !leftOut(slot) && present(slot) }
	rankings := make([]ranked, len(q.texts))
	for i, text := range q.texts {
		rankings[i] = ranked{m.vectors.cosines(q.vectors[i]), m.lexical.score(prepare.Terms(text), make([]float32, len(m.entries)))}
	}
	asking := rankings[:len(q.asking())]
	for n := max(depth, 4*limit); ; n *= 4 {
		hits := m.collect(m.rank(rankings, asking, asked, allowed, n), asked, asking, limit, perDocument)
		if len(hits) == limit || n >= m.live {
			return hits
		}
	}
}

func matches(metadata, filter map[string]string) bool {
	for key, value := range filter {
		if have, ok := metadata[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// wanted gives the identifiers that the texts ask for.
func (m *memory) wanted(texts []string) []retrieval.Identifier {
	return prepare.Wanted(texts, func(family string) bool { return m.families[family] != nil })
}

// asked is how the passages stand to the identifiers that a query asks for, by
// slot. Identifiers of one family are one kind; one without a family is a kind
// of its own.
type asked struct {
	identifiers []retrieval.Identifier
	held        []uint8 // the kinds of which the passage holds one that is asked for
	wrong       []bool  // of some kind it holds neighbours only
	kinds       int
}

// ask looks the identifiers up. It is nil if there are none.
func (m *memory) ask(identifiers []retrieval.Identifier) *asked {
	if len(identifiers) == 0 {
		return nil
	}
	kinds := make(map[string][]retrieval.Identifier)
	for _, id := range identifiers {
		kind := cmp.Or(id.Family, "="+id.Key)
		kinds[kind] = append(kinds[kind], id)
	}
	a := &asked{identifiers: identifiers, kinds: len(kinds), held: make([]uint8, len(m.entries)), wrong: make([]bool, len(m.entries))}
	holds, neighbour := make([]bool, len(m.entries)), make([]bool, len(m.entries))
	for kind, ids := range kinds {
		clear(holds)
		clear(neighbour)
		for _, id := range ids {
			for _, slot := range m.holding(id) {
				holds[slot] = true
			}
		}
		for key := range m.families[kind] {
			for _, slot := range m.known[key].sure {
				neighbour[slot] = true
			}
		}
		for slot := range holds {
			if holds[slot] {
				a.held[slot] = uint8(min(int(a.held[slot])+1, math.MaxUint8))
			} else if neighbour[slot] {
				a.wrong[slot] = true
			}
		}
	}
	return a
}

// left gives the passages that are left out: those that hold neighbours of what
// is asked for and nothing asked for, and, if some passage holds something of
// each kind, all that hold neighbours only of one. So "ERR-5172 on the AX-100"
// finds neither ERR-5171 of the AX-100 nor ERR-5172 of the AX-200.
func (a *asked) left(allowed func(slot int32) bool) func(slot int32) bool {
	if a == nil {
		return func(int32) bool { return false }
	}
	whole := false
	for slot, held := range a.held {
		whole = whole || int(held) == a.kinds && !a.wrong[slot] && allowed(int32(slot))
	}
	return func(slot int32) bool { return a.wrong[slot] && (whole || a.held[slot] == 0) }
}

// A candidate is a passage with its score.
type candidate struct {
	slot  int32
	score float64
}

// rank fuses the first n places of each ranking (after those of asking come
// those of the context) and puts passages that hold an
// identifier asked for first: they score 1 more for each kind of which they hold
// one, and the best for each identifier another 1, so that no identifier is
// crowded out by the passages of another.
func (m *memory) rank(rankings, asking []ranked, asked *asked, allowed func(int32) bool, n int) []candidate {
	var lists []retrieval.Ranking[int32]
	before := func(a, b int32) bool { return m.entries[a].passage.ID < m.entries[b].passage.ID }
	for i, r := range rankings {
		weight := 1 / float64(i+1)
		if i >= len(asking) {
			weight = retrieval.ContextWeight
		}
		shares := func(slot int32) bool { return r.bm25[slot] > 0 && allowed(slot) }
		lists = append(lists,
			retrieval.Ranking[int32]{Items: top(r.cosines, n, allowed, before), Weight: weight},
			retrieval.Ranking[int32]{Items: top(r.bm25, n, shares, before), Weight: weight})
	}
	scores := make(map[int32]float64)
	for _, f := range retrieval.Fuse(lists...) {
		scores[f.Item] = f.Score
	}
	better := func(a, b int32) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(best(asking, b).Cosine, best(asking, a).Cosine),
			strings.Compare(m.entries[a].passage.ID, m.entries[b].passage.ID))
	}
	if asked != nil {
		for slot, held := range asked.held {
			if held > 0 && allowed(int32(slot)) {
				scores[int32(slot)] += float64(held)
			}
		}
		first := make(map[int32]bool)
		for _, id := range asked.identifiers {
			holding := slices.DeleteFunc(m.holding(id), func(slot int32) bool { return !allowed(slot) })
			if exact := slices.DeleteFunc(slices.Clone(holding), func(slot int32) bool { return !m.holds(slot, id.Key) }); len(exact) > 0 {
				holding = exact // before those with a span that covers it
			}
			if len(holding) > 0 {
				first[slices.MinFunc(holding, better)] = true
			}
		}
		for slot := range first {
			scores[slot]++
		}
	}
	candidates := slices.SortedFunc(maps.Keys(scores), better)
	out := make([]candidate, len(candidates))
	for i, slot := range candidates {
		out[i] = candidate{slot, scores[slot]}
	}
	return out
}

// best gives a passage's best scores over rankings.
func best(rankings []ranked, slot int32) retrieval.Hit {
	h := retrieval.Hit{Cosine: -1}
	for _, r := range rankings {
		h.Cosine = max(h.Cosine, float64(r.cosines[slot]))
		h.BM25 = max(h.BM25, float64(r.bm25[slot]))
	}
	return h
}

// collect takes the first candidates that differ in their text, at most
// perDocument of one document if that is not 0.
func (m *memory) collect(candidates []candidate, asked *asked, rankings []ranked, limit, perDocument int) []retrieval.Hit {
	var hits []retrieval.Hit
	texts, documents := make(map[string]bool), make(map[string]int)
	for _, c := range candidates {
		if len(hits) == limit {
			break
		}
		e := m.entries[c.slot]
		text := strings.TrimSpace(e.passage.Text)
		if texts[text] || perDocument > 0 && documents[e.passage.Document] == perDocument {
			continue
		}
		texts[text] = true
		documents[e.passage.Document]++
		hit := best(rankings, c.slot)
		hit.Passage = e.passage
		hit.Metadata = maps.Clone(e.passage.Metadata)
		hit.Score = c.score
		for _, id := range e.identifiers {
			if asked != nil && slices.ContainsFunc(asked.identifiers, func(w retrieval.Identifier) bool { return w.Key == id.Key }) {
				hit.Identifiers = append(hit.Identifiers, id.Text)
			}
		}
		hits = append(hits, hit)
	}
	return hits
}
