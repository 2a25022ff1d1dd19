package prepare

import (
	"cmp"
	"iter"
	"slices"

	"github.com/askback/askback/internal/edit"
	"github.com/askback/askback/retrieval"
)

// NearestLimit is how many identifiers an index offers for an unknown one.
const NearestLimit = 3

// Nearest gives those of the stored identifiers that an unknown one may be meant
// to be, best first: by edit distance, those of its family before others, and of
// equals the first by alphabet. Of others a slip or two are allowed.
func Nearest(id retrieval.Identifier, stored iter.Seq[retrieval.Identifier]) []retrieval.Identifier {
	type near struct {
		retrieval.Identifier
		distance, other int // other is 1 if it is of another family
	}
	var found []near
	for it := range stored {
		if it.Key == id.Key {
			continue
		}
		n := near{Identifier: it}
		allowed := len(id.Key)
		if id.Family == "" || it.Family != id.Family {
			allowed, n.other = len(id.Key)/4, 1
		}
		if n.distance = edit.Distance([]byte(id.Key), []byte(it.Key), allowed); n.distance <= allowed {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.other, b.other), cmp.Compare(a.distance, b.distance), cmp.Compare(a.Text, b.Text))
	})
	out := make([]retrieval.Identifier, len(found))
	for i, n := range found {
		out[i] = n.Identifier
	}
	return out
}
