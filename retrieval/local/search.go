package local

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// depth is the least number of places of each ranking that are fused.
const depth = 100

// maxQuery is the number of bytes of a query text that are searched for: of a
// longer one, the first and the last half of that.
const maxQuery = 8192

// queryTexts gives the texts of a query as they are searched for: valid UTF-8,
// not empty, each once, and not too long.
func queryTexts(texts []string) []string {
	var out []string
	for _, text := range texts {
		if len(text) > maxQuery {
			head, tail := maxQuery/2, len(text)-maxQuery/2
			for head > 0 && !utf8.RuneStart(text[head]) {
				head--
			}
			for tail < len(text) && !utf8.RuneStart(text[tail]) {
				tail++
			}
			text = text[:head] + "\n" + text[tail:]
		}
		text = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD"))
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// ranked is how the passages stand to one text of a query, by slot.
type ranked struct {
	cosines, bm25 []float32
}

// search finds hits, best first. vectors belong to texts.
//
// For each text the passages are ranked by cosine and by BM25; all rankings are
// fused, those of the i-th text with weight 1/i. Passages that hold an
// identifier of the query come first, and those that hold only neighbours of it
// are left out. Of passages with the same text one is given.
func (m *memory) search(texts []string, vectors [][]float32, filter map[string]string, limit, perDocument int) []retrieval.Hit {
	limit = min(limit, m.live)
	if limit <= 0 {
		return nil
	}
	wanted := m.wanted(texts)
	neighbours := m.neighbours(wanted)
	allowed := func(slot int32) bool {
		return m.entries[slot] != nil && (neighbours == nil || !neighbours[slot]) && matches(m.entries[slot].passage.Metadata, filter)
	}
	rankings := make([]ranked, len(texts))
	for i, text := range texts {
		a := analyzers.Get().(*analyzer)
		terms := a.terms(text, retrieval.ScanIdentifiers(text))
		rankings[i] = ranked{m.vectors.cosines(vectors[i]), m.lexical.score(terms, make([]float32, len(m.entries)))}
		analyzers.Put(a)
	}
	for n := max(depth, 4*limit); ; n *= 4 {
		hits := m.collect(m.rank(rankings, wanted, allowed, n), wanted, rankings, limit, perDocument)
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

// wanted gives the identifiers that the texts ask for, each once: the sure ones,
// and the others whose family is known.
func (m *memory) wanted(texts []string) []retrieval.Identifier {
	var wanted []retrieval.Identifier
	for _, text := range texts {
		pair := ""
		for _, id := range retrieval.ScanIdentifiers(text) {
			if pair != "" && strings.HasSuffix(pair, " "+id.Text) {
				continue // the number of the one before
			}
			pair = ""
			if !id.Sure && m.families[id.Family] == nil {
				continue
			}
			if strings.Contains(id.Text, " ") {
				pair = id.Text
			}
			if !slices.ContainsFunc(wanted, func(w retrieval.Identifier) bool { return w.Key == id.Key }) {
				wanted = append(wanted, id)
			}
		}
	}
	return wanted
}

// neighbours tells by slot which passages hold an identifier of the family of a
// wanted one, but none that is wanted. It is nil if none does.
func (m *memory) neighbours(wanted []retrieval.Identifier) []bool {
	var slots []bool
	for _, w := range wanted {
		for key := range m.families[w.Family] {
			if slots == nil {
				slots = make([]bool, len(m.entries))
			}
			for _, slot := range m.known[key].sure {
				slots[slot] = true
			}
		}
	}
	if slots == nil {
		return nil
	}
	for _, w := range wanted {
		if k := m.known[w.Key]; k != nil {
			for _, slot := range k.slots {
				slots[slot] = false
			}
		}
	}
	return slots
}

// A candidate is a passage with its score.
type candidate struct {
	slot  int32
	score float64
}

// rank fuses the first n places of each ranking and puts passages that hold a
// wanted identifier first: they score 1 more, and the best for each identifier
// another 1, so that no identifier is crowded out by the passages of another.
func (m *memory) rank(rankings []ranked, wanted []retrieval.Identifier, allowed func(int32) bool, n int) []candidate {
	var lists []retrieval.Ranking[int32]
	before := func(a, b int32) bool { return m.entries[a].passage.ID < m.entries[b].passage.ID }
	for i, r := range rankings {
		weight := 1 / float64(i+1)
		shares := func(slot int32) bool { return r.bm25[slot] > 0 && allowed(slot) }
		lists = append(lists,
			retrieval.Ranking[int32]{Items: top(r.cosines, n, allowed, before), Weight: weight},
			retrieval.Ranking[int32]{Items: top(r.bm25, n, shares, before), Weight: weight})
	}
	scores := make(map[int32]float64)
	for _, f := range retrieval.Fuse(lists...) {
		scores[f.Item] = f.Score
	}
	fused := maps.Clone(scores)
	better := func(a, b int32) int {
		return cmp.Or(cmp.Compare(fused[b], fused[a]), cmp.Compare(best(rankings, b).Cosine, best(rankings, a).Cosine),
			strings.Compare(m.entries[a].passage.ID, m.entries[b].passage.ID))
	}
	exact, first := make(map[int32]bool), make(map[int32]bool)
	for _, w := range wanted {
		k := m.known[w.Key]
		if k == nil {
			continue
		}
		var holding []int32
		for _, slot := range k.slots {
			if allowed(slot) {
				holding = append(holding, slot)
				exact[slot] = true
			}
		}
		if len(holding) > 0 {
			first[slices.MinFunc(holding, better)] = true
		}
	}
	for slot := range exact {
		scores[slot]++
	}
	for slot := range first {
		scores[slot]++
	}
	candidates := make([]candidate, 0, len(scores))
	for slot, score := range scores {
		candidates = append(candidates, candidate{slot, score})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), better(a.slot, b.slot))
	})
	return candidates
}

// best gives a passage's best scores over the texts.
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
func (m *memory) collect(candidates []candidate, wanted []retrieval.Identifier, rankings []ranked, limit, perDocument int) []retrieval.Hit {
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
			if slices.ContainsFunc(wanted, func(w retrieval.Identifier) bool { return w.Key == id.Key }) {
				hit.Identifiers = append(hit.Identifiers, id.Text)
			}
		}
		hits = append(hits, hit)
	}
	return hits
}
