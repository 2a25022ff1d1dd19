package local

import (
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

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

// nearest gives the stored identifiers most like one, best first.
func (m *memory) nearest(id retrieval.Identifier) []string {
	stored := func(yield func(retrieval.Identifier) bool) {
		for _, k := range m.known {
			if len(k.sure) > 0 && !yield(k.Identifier) {
				return
			}
		}
	}
	var texts []string
	for _, n := range prepare.Nearest(id, stored) {
		if len(texts) == prepare.NearestLimit {
			break
		}
		texts = append(texts, n.Text)
	}
	return texts
}
