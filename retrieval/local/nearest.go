package local

import (
	"cmp"
	"slices"

	"github.com/askback/askback/retrieval"
)

// nearestLimit is how many identifiers nearest offers.
const nearestLimit = 3

// knownIdentifiers says of each identifier in a text whether a passage holds it,
// and if not, which it may be meant to be.
func (m *memory) knownIdentifiers(text string) []retrieval.KnownIdentifier {
	var out []retrieval.KnownIdentifier
	for _, id := range m.wanted([]string{text}) {
		k := retrieval.KnownIdentifier{Identifier: id.Text, Known: len(m.holding(id)) > 0}
		if !k.Known {
			k.Nearest = m.nearest(id)
		}
		out = append(out, k)
	}
	return out
}

// nearest gives the stored identifiers most like one, best first: by edit
// distance, those of its family before others, and the nearer number first.
func (m *memory) nearest(id retrieval.Identifier) []string {
	type near struct {
		text     string
		distance int
		other    bool // of another family
	}
	var found []near
	for key, k := range m.known {
		if len(k.sure) == 0 || key == id.Key {
			continue
		}
		related := id.Family != "" && m.families[id.Family][key]
		allowed := len(id.Key) / 4 // a slip or two
		if related {
			allowed = len(id.Key)
		}
		if d := distance(id.Key, key, allowed); d <= allowed {
			found = append(found, near{k.text, d, !related})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		if a.other != b.other {
			if a.other {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.text, b.text))
	})
	var texts []string
	for _, n := range found[:min(len(found), nearestLimit)] {
		texts = append(texts, n.text)
	}
	return texts
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment), or more than limit.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
