package tenant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/askback/askback/retrieval"
)

// Store is where documents are: those for everyone, or those of one tenant.
type Store interface {
	retrieval.Library
	retrieval.Retriever
}

// Knowledge is what the context's tenant is answered from: the documents for everyone
// and its own. What is written is its own.
type Knowledge struct {
	common Store
	open   func(ctx context.Context, tenant string) (Store, error)

	mu  sync.Mutex
	own map[string]*shelf
}

// shelf is one tenant's store, opened when it is first needed.
type shelf struct {
	mu    sync.Mutex
	store Store
}

var (
	_ Store                     = (*Knowledge)(nil)
	_ retrieval.Explainer       = (*Knowledge)(nil)
	_ retrieval.IdentifierStore = (*Knowledge)(nil)
)

// NewKnowledge puts tenants' documents beside those for everyone, which common has and
// which are not written here. open gives a tenant's store; it is called once for
// each, and again only if it fails.
func NewKnowledge(common Store, open func(ctx context.Context, tenant string) (Store, error)) *Knowledge {
	return &Knowledge{common: common, open: open, own: map[string]*shelf{}}
}

// Close closes the tenants' stores. That for everyone is its opener's to close.
func (k *Knowledge) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, s := range k.own {
		s.mu.Lock()
		if c, ok := s.store.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
		s.mu.Unlock()
	}
	k.own = map[string]*shelf{}
	return errors.Join(errs...)
}

// mine is the store of the context's tenant.
func (k *Knowledge) mine(ctx context.Context) (Store, error) {
	name, err := needed(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	s := k.own[name]
	if s == nil {
		s = &shelf{}
		k.own[name] = s
	}
	k.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		store, err := k.open(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("opening the documents of %s: %w", name, err)
		}
		s.store = store
	}
	return s.store, nil
}

// both asks the tenant's store and that for everyone at the same time.
func both[T any](ctx context.Context, k *Knowledge, ask func(Store) (T, error)) (own, common T, err error) {
	mine, err := k.mine(ctx)
	if err != nil {
		return own, common, err
	}
	var ownErr, commonErr error
	var wg sync.WaitGroup
	wg.Go(func() { own, ownErr = ask(mine) })
	common, commonErr = ask(k.common)
	wg.Wait()
	return own, common, cmp.Or(ownErr, commonErr)
}

// Retrieve implements retrieval.Retriever.
func (k *Knowledge) Retrieve(ctx context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	hits, err := k.Explain(ctx, q)
	if err != nil {
		return nil, err
	}
	return retrieval.Passages(hits), nil
}

// Explain implements retrieval.Explainer. Where one of the two stores finds nothing, the
// other's hits stand as they are. Otherwise they are ranked anew by their cosines and
// by BM25, and these rankings and the stores' own are fused; what holds an identifier
// asked for stays before what holds none.
func (k *Knowledge) Explain(ctx context.Context, q retrieval.Query) ([]retrieval.Hit, error) {
	own, common, err := both(ctx, k, func(s Store) ([]retrieval.Hit, error) { return retrieval.Explain(ctx, s, q) })
	switch {
	case err != nil:
		return nil, err
	case len(own) == 0:
		return common, nil
	case len(common) == 0:
		return own, nil
	}
	return merge(own, common, cmp.Or(max(q.Limit, 0), retrieval.DefaultLimit)), nil
}

// merge makes one ranking of two stores' hits.
func merge(own, common []retrieval.Hit, limit int) []retrieval.Hit {
	var hits []retrieval.Hit
	texts := map[string]bool{}
	ranks := make([][]int, 4) // of the two stores, by cosine, by BM25: places in hits
	for store, found := range [][]retrieval.Hit{own, common} {
		for _, h := range found {
			if texts[h.Text] {
				continue
			}
			texts[h.Text] = true
			ranks[store] = append(ranks[store], len(hits))
			hits = append(hits, h)
		}
	}
	for kind, value := range []func(retrieval.Hit) float64{func(h retrieval.Hit) float64 { return h.Cosine }, func(h retrieval.Hit) float64 { return h.BM25 }} {
		all := make([]int, 0, len(hits))
		for i, h := range hits {
			if kind == 0 || value(h) > 0 {
				all = append(all, i)
			}
		}
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(value(hits[b]), value(hits[a])) })
		ranks[2+kind] = all
	}
	const order = retrieval.ContextWeight // of a store's own, which knows the context
	fused := retrieval.Fuse(retrieval.Ranking[int]{Items: ranks[2]}, retrieval.Ranking[int]{Items: ranks[3]},
		retrieval.Ranking[int]{Items: ranks[0], Weight: order}, retrieval.Ranking[int]{Items: ranks[1], Weight: order})
	ranked, tiers := make([]retrieval.Hit, len(fused)), map[string]float64{}
	for i, f := range fused {
		h := hits[f.Item]
		if len(h.Identifiers) > 0 { // then its store gave it 1 or more on top
			tiers[h.ID] = math.Max(1, math.Floor(h.Score))
		}
		h.Score = f.Score + tiers[h.ID]
		ranked[i] = h
	}
	slices.SortStableFunc(ranked, func(a, b retrieval.Hit) int { return cmp.Compare(tiers[b.ID], tiers[a.ID]) })
	return ranked[:min(limit, len(ranked))]
}

// KnownIdentifiers implements retrieval.IdentifierStore.
func (k *Knowledge) KnownIdentifiers(ctx context.Context, text string) ([]retrieval.KnownIdentifier, error) {
	own, common, err := both(ctx, k, func(s Store) ([]retrieval.KnownIdentifier, error) {
		if i, ok := s.(retrieval.IdentifierStore); ok {
			return i.KnownIdentifiers(ctx, text)
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	for _, o := range own {
		i := slices.IndexFunc(common, func(c retrieval.KnownIdentifier) bool { return c.Identifier == o.Identifier })
		if i < 0 {
			common = append(common, o)
			continue
		}
		c := &common[i]
		if c.Known = c.Known || o.Known; c.Known {
			c.Nearest = nil
			continue
		}
		for _, near := range o.Nearest {
			if !slices.Contains(c.Nearest, near) {
				c.Nearest = append(c.Nearest, near)
			}
		}
	}
	return common, nil
}

// Documents implements retrieval.Store: the tenant's own, and those for everyone,
// whose fingerprints are never those of uploads.
func (k *Knowledge) Documents(ctx context.Context) (map[string]string, error) {
	own, common, err := both(ctx, k, func(s Store) (map[string]string, error) { return s.Documents(ctx) })
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(own)+len(common))
	for name, fingerprint := range common {
		all[name] = fixed(fingerprint)
	}
	maps.Copy(all, own)
	return all, nil
}

// fixed is the fingerprint of a document for everyone, which no tenant uploaded.
func fixed(fingerprint string) string { return strings.TrimPrefix(fingerprint, retrieval.UploadMark) }

// List implements retrieval.Library.
func (k *Knowledge) List(ctx context.Context) ([]retrieval.DocumentInfo, error) {
	own, common, err := both(ctx, k, func(s Store) ([]retrieval.DocumentInfo, error) { return s.List(ctx) })
	if err != nil {
		return nil, err
	}
	all := slices.Clone(own)
	for _, d := range common {
		if slices.ContainsFunc(own, func(o retrieval.DocumentInfo) bool { return o.ID == d.ID }) {
			continue // the name came to be everyone's after it was the tenant's
		}
		d.Fingerprint = fixed(d.Fingerprint)
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b retrieval.DocumentInfo) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// Get implements retrieval.Library.
func (k *Knowledge) Get(ctx context.Context, ids ...string) ([]retrieval.Passage, error) {
	own, common, err := both(ctx, k, func(s Store) ([]retrieval.Passage, error) { return s.Get(ctx, ids...) })
	if err != nil {
		return nil, err
	}
	by := make(map[string]retrieval.Passage, len(own)+len(common))
	for _, p := range slices.Concat(common, own) {
		by[p.ID] = p
	}
	var all []retrieval.Passage
	for _, id := range ids {
		if p, ok := by[id]; ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// Replace implements retrieval.Store: the document becomes the tenant's.
func (k *Knowledge) Replace(ctx context.Context, document, fingerprint string, passages []retrieval.Passage) error {
	mine, err := k.mine(ctx)
	if err != nil {
		return err
	}
	return mine.Replace(ctx, document, fingerprint, passages)
}

// Delete implements retrieval.Store, of the tenant's documents.
func (k *Knowledge) Delete(ctx context.Context, documents ...string) error {
	mine, err := k.mine(ctx)
	if err != nil {
		return err
	}
	return mine.Delete(ctx, documents...)
}
