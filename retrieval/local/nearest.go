package local

import (
	"cmp"
	"slices"

	"github.com/askback/askback/internal/edit"
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
		if d := edit.Distance([]byte(id.Key), []byte(key), allowed); d <= allowed {
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
