package retrieval

import (
	"context"
	"slices"
)

// FusionK is the constant of reciprocal rank fusion: the larger, the less the
// first places count over the later ones. 60 is the value of the paper.
const FusionK = 60

// Ranking is a list of items, best first, and how much it counts.
type Ranking[K comparable] struct {
	Items  []K
	Weight float64 // 0 means 1
}

// Fused is an item with its fused score.
type Fused[K comparable] struct {
	Item K
	// Score is 1 for an item that is first in every ranking, and falls towards
	// 0; it tells nothing about how relevant the item is, only how well placed.
	Score float64
}

// Fuse joins rankings of the same things by reciprocal rank fusion: an item at
// place r (from 1) of a ranking gets weight / (FusionK + r), and its scores are
// summed. Scores of different kinds (a cosine, BM25) are thus never compared,
// only places. An item that a ranking does not hold gets nothing from it; an
// item listed twice in a ranking counts at its first place. Equal scores keep
// the order in which the items first appear. Empty rankings count for nothing.
//
// Source: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion outperforms
// Condorcet and individual Rank Learning Methods", SIGIR 2009. The weights and
// the scaling to 1 are additions.
func Fuse[K comparable](rankings ...Ranking[K]) []Fused[K] {
	place := make(map[K]int)
	var fused []Fused[K]
	var best float64
	for _, r := range rankings {
		if len(r.Items) == 0 {
			continue
		}
		weight := r.Weight
		if weight == 0 {
			weight = 1
		}
		best += weight / (FusionK + 1)
		seen := make(map[K]bool, len(r.Items))
		rank := 0
		for _, item := range r.Items {
			if seen[item] {
				continue
			}
			seen[item] = true
			rank++
			i, ok := place[item]
			if !ok {
				i = len(fused)
				place[item] = i
				fused = append(fused, Fused[K]{Item: item})
			}
			fused[i].Score += weight / float64(FusionK+rank)
		}
	}
	for i := range fused {
		fused[i].Score /= best
	}
	slices.SortStableFunc(fused, func(a, b Fused[K]) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return fused
}

// Hit is a passage found, with what its Score was made of.
type Hit struct {
	Passage
	// Cosine is the similarity, -1 to 1, of the passage's vector and that of the
	// query text nearest to it. Unlike Score it is comparable between queries.
	Cosine float64 `json:"cosine"`
	// BM25 is the best BM25 score over the query's texts, 0 or more; 0 if no
	// word is shared.
	BM25 float64 `json:"bm25"`
	// Identifiers are the query's exact identifiers that the passage holds, as
	// the passage writes them.
	Identifiers []string `json:"identifiers,omitempty"`
}

// Explainer is what a Retriever also offers if it can say what the scores were
// made of. Explain gives the same passages in the same order as Retrieve.
type Explainer interface {
	Explain(ctx context.Context, q Query) ([]Hit, error)
}

// Explain retrieves from r, with what scores were made of if r is an Explainer.
func Explain(ctx context.Context, r Retriever, q Query) ([]Hit, error) {
	if e, ok := r.(Explainer); ok {
		return e.Explain(ctx, q)
	}
	passages, err := r.Retrieve(ctx, q)
	hits := make([]Hit, len(passages))
	for i, p := range passages {
		hits[i].Passage = p
	}
	return hits, err
}

// Passages are those of hits, in their order.
func Passages(hits []Hit) []Passage {
	passages := make([]Passage, len(hits))
	for i, h := range hits {
		passages[i] = h.Passage
	}
	return passages
}
