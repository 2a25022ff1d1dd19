package qdrant

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

// Search is what Store.Search is asked, more than a retrieval.Query can say.
type Search struct {
	retrieval.Query
	// Mode says which of the two vectors are searched.
	Mode Mode
	// Threshold, if set, keeps passages whose vector is near enough to that of a
	// text of the query: for cosine and dot product it is the least that they
	// may have, for Euclidean and Manhattan distance the most.
	Threshold *float64
	// PerDocument is the most passages of one document; 0 means that of the
	// store's options.
	PerDocument int
	// Where are further conditions on the payload, all of which must be met.
	// They can only narrow what the tenant has.
	Where []*api.Condition
}

// Mode says what a search compares.
type Mode int

const (
	Hybrid Mode = iota // by vectors and by words, fused
	Dense              // by the embedder's vectors alone
	Words              // by words alone (BM25)
)

// depth is the least number of places of each ranking that are fused.
const depth = 100

// maxDepth is the most, and the most passages of a result: what is not found by
// then is not found.
const maxDepth = 20_000

// Retrieve finds passages by meaning and by words, as local.Index.Retrieve does:
// the rankings of each of the query's texts are fused, passages that hold an
// exact identifier of the query come first, those that hold only neighbours of
// it are left out, and of passages with the same text one is given.
//
// Score is the fused score, 0 to 1, and for passages that hold an identifier
// asked for 1 or more on top.
func (s *Store) Retrieve(ctx context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	hits, err := s.Search(ctx, Search{Query: q})
	if err != nil {
		return nil, err
	}
	return retrieval.Passages(hits), nil
}

// Explain retrieves and tells what the scores were made of.
func (s *Store) Explain(ctx context.Context, q retrieval.Query) ([]retrieval.Hit, error) {
	hits, ids, err := s.search(ctx, Search{Query: q})
	if err != nil || len(hits) == 0 {
		return hits, err
	}
	return hits, s.explainWords(ctx, prepare.Texts(q.Texts), hits, ids)
}

// Search finds passages, best first. Of Hit, BM25 is not filled in; Explain does.
func (s *Store) Search(ctx context.Context, q Search) ([]retrieval.Hit, error) {
	hits, _, err := s.search(ctx, q)
	return hits, err
}

// search gives the points' ids too.
func (s *Store) search(ctx context.Context, q Search) ([]retrieval.Hit, []string, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if q.Mode < Hybrid || q.Mode > Words {
		return nil, nil, fmt.Errorf("searching Qdrant: there is no mode %d", q.Mode)
	}
	r := &run{Store: s, Search: q, texts: prepare.Texts(q.Texts)}
	r.ranked = prepare.Texts(append(slices.Clone(r.texts), q.Context))
	if r.Limit <= 0 {
		r.Limit = retrieval.DefaultLimit
	}
	r.Limit = min(r.Limit, maxDepth)
	if r.PerDocument <= 0 {
		r.PerDocument = s.options.PerDocument
	}
	conditions, possible := equal(q.Filter)
	r.must = append(conditions, q.Where...)
	if ok, err := s.attach(ctx); err != nil || !ok || len(r.texts) == 0 || !possible {
		return nil, nil, err
	}
	for _, text := range r.ranked {
		v, err := s.options.Embedder.EmbedQuery(ctx, text)
		if err == nil {
			v, err = s.vector(v)
		}
		if have := int(s.dimension.Load()); err == nil && len(v) != have {
			n, _ := s.count(ctx, nil) // for the error
			err = s.mismatch(s.ours(have), s.ours(len(v)), n)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("embedding the query: %w", err)
		}
		r.vectors = append(r.vectors, v)
	}
	pinned := make(pins)
	for round := 1; ; round++ {
		hits, ids, ok, err := r.round(ctx, pinned)
		if absent(err) {
			s.attached.Store(false)
			return nil, nil, nil
		}
		// In the last round passages are given that were current a moment ago,
		// though of a document that changes all the time some may be missing.
		if err != nil || ok || round == maxRounds {
			return hits, ids, err
		}
	}
}

// run is one search.
type run struct {
	*Store
	Search
	texts   []string
	ranked  []string    // the texts, and perhaps the context after them
	vectors [][]float32 // of ranked
	must    []*api.Condition
}

// candidate is a passage found.
type candidate struct {
	id, document, version string
	keys                  []string
	fused                 float64
	score                 float64 // fused, and what identifiers add
	cosine                float64 // the best over the texts; -2 if not known
	measure               float64 // the best by the collection's distance
	passage               retrieval.Passage
}

// round searches once. ok is false if documents changed meanwhile; then pinned
// has their versions for the next round.
func (r *run) round(ctx context.Context, pinned pins) (hits []retrieval.Hit, ids []string, ok bool, err error) {
	not := pinned.not()
	asked, err := r.ask(ctx, r.texts, r.must, not)
	if err != nil {
		return nil, nil, false, err
	}
	filter := r.mine(r.must, append(not, asked.leftOut()...))
	// Passages with the same text, and those beyond PerDocument, are passed
	// over, so that more are looked at than are wanted.
	n, top := min(max(depth, 4*r.Limit), maxDepth), 2*r.Limit+8
	for {
		start := time.Now()
		candidates, all, err := r.find(ctx, filter, asked, n)
		if err != nil {
			return nil, nil, false, err
		}
		looked := candidates[:min(top, len(candidates))]
		looked, ok, err := r.read(ctx, looked, pinned, start)
		if err != nil {
			return nil, nil, false, err
		}
		r.order(looked, asked)
		hits, ids = r.collect(looked, asked)
		switch {
		case !ok:
			return hits, ids, false, nil
		case len(hits) == r.Limit || top >= len(candidates) && (all || n >= maxDepth):
			return hits, ids, true, nil
		case top < len(candidates):
			top *= 4
		default:
			n, top = min(4*n, maxDepth), 4*top
		}
	}
}

// find makes the rankings of all texts in one request and joins them. all
// reports whether nothing is beyond the first n places.
func (r *run) find(ctx context.Context, filter *api.Filter, asked *asked, n int) (candidates []*candidate, all bool, err error) {
	var queries []*api.QueryPoints
	fields := []string{fieldDocument, fieldVersion}
	if asked != nil {
		fields = append(fields, fieldKeys)
	}
	query := func(q *api.Query, using string, limit int, filter *api.Filter) *api.QueryPoints {
		p := &api.QueryPoints{CollectionName: r.options.Collection, Query: q, Filter: filter, Limit: api.PtrOf(uint64(limit)), Params: r.params(),
			WithPayload: api.NewWithPayloadInclude(fields...)}
		if using != "" {
			p.Using = &using
		}
		return p
	}
	dense := func(i, limit int, filter *api.Filter) *api.QueryPoints {
		q := query(api.NewQueryDense(r.vectors[i]), vectorDense, limit, filter)
		q.ScoreThreshold = r.threshold()
		return q
	}
	for i, text := range r.ranked {
		indices, values := queryWords(text)
		switch {
		case r.Mode == Dense || r.Mode == Hybrid && len(indices) == 0:
			queries = append(queries, dense(i, n, filter))
		case r.Mode == Words && len(indices) == 0:
			queries = append(queries, nil)
		case r.Mode == Words:
			queries = append(queries, query(api.NewQuerySparse(indices, values), vectorWords, n, filter))
		default:
			// The places of reciprocal rank fusion count from 0 there.
			hybrid := query(api.NewQueryRRF(&api.Rrf{K: api.PtrOf(uint32(retrieval.FusionK + 1))}), "", 2*n, nil)
			hybrid.Params = nil
			hybrid.Prefetch = []*api.PrefetchQuery{
				{Query: api.NewQueryDense(r.vectors[i]), Using: api.PtrOf(vectorDense), Limit: api.PtrOf(uint64(n)), Filter: filter, Params: r.params(), ScoreThreshold: r.threshold()},
				{Query: api.NewQuerySparse(indices, values), Using: api.PtrOf(vectorWords), Limit: api.PtrOf(uint64(n)), Filter: filter},
			}
			queries = append(queries, hybrid)
		}
	}
	ranked := len(queries)
	if asked != nil {
		// Passages that hold what is asked for, wherever they are ranked.
		for i := range asked.identifiers {
			for text := range r.texts {
				queries = append(queries, dense(text, n, narrowed(filter, asked.holding(i))))
			}
		}
		if len(asked.kinds) > 1 {
			queries = append(queries, dense(0, n, narrowed(filter, asked.all()...)))
		}
	}
	results, err := r.batch(ctx, queries)
	if err != nil {
		return nil, false, err
	}
	byID := make(map[string]*candidate)
	of := func(p *api.ScoredPoint) *candidate {
		id := p.GetId().GetUuid()
		c := byID[id]
		if c == nil {
			c = &candidate{id: id, document: p.Payload[fieldDocument].GetStringValue(), version: p.Payload[fieldVersion].GetStringValue(),
				keys: stringList(p.Payload[fieldKeys]), cosine: -2}
			byID[id] = c
			candidates = append(candidates, c)
		}
		return c
	}
	all = true
	best := 0.0
	for i, points := range results[:ranked] {
		weight := 1 / float64(i+1)
		if i >= len(r.texts) {
			weight = retrieval.ContextWeight
		}
		all = all && len(points) < n
		scores, lists := fusedScores(points, queries[i])
		best += weight * float64(lists) / (retrieval.FusionK + 1)
		for at, p := range points {
			of(p).fused += weight * scores[at]
		}
	}
	for _, points := range results[ranked:] {
		for _, p := range points {
			if c := of(p); r.options.Layout.Distance == Cosine {
				c.cosine = max(c.cosine, float64(p.Score))
			}
		}
	}
	for _, c := range candidates {
		// The server adds up in float32; what is equal is to be equal.
		c.fused = math.Round(c.fused/max(best, 1e-9)*1e6) / 1e6
	}
	r.order(candidates, asked)
	return candidates, all, nil
}

// fusedScores gives the scores of reciprocal rank fusion of a result and the
// number of rankings that went into it. A ranking that found nothing counts for
// nothing, as in retrieval.Fuse.
func fusedScores(points []*api.ScoredPoint, q *api.QueryPoints) (scores []float64, lists int) {
	const first = 1.0 / (retrieval.FusionK + 1)
	for i, p := range points {
		if q.GetPrefetch() == nil {
			scores = append(scores, 1/float64(retrieval.FusionK+1+i))
		} else {
			scores = append(scores, float64(p.Score))
		}
	}
	if len(points) == 0 {
		return nil, 0
	}
	// With two rankings either one is first in one and somewhere in the other, or
	// two are first.
	if q.GetPrefetch() != nil && (scores[0] > first*1.00001 || len(scores) > 1 && scores[1] > first*0.99999) {
		return scores, 2
	}
	return scores, 1
}

func narrowed(f *api.Filter, must ...*api.Condition) *api.Filter {
	return &api.Filter{Must: append(slices.Clone(f.Must), must...), MustNot: f.MustNot}
}

func (r *run) threshold() *float32 {
	if r.Threshold == nil {
		return nil
	}
	return api.PtrOf(float32(*r.Threshold))
}

func (s *Store) params() *api.SearchParams {
	p := &api.SearchParams{Exact: api.PtrOf(s.options.Exact)}
	switch s.options.Layout.Quantization {
	case Scalar:
		p.Quantization = &api.QuantizationSearchParams{Rescore: api.PtrOf(true), Oversampling: api.PtrOf(2.0)}
	case Binary:
		p.Quantization = &api.QuantizationSearchParams{Rescore: api.PtrOf(true), Oversampling: api.PtrOf(4.0)}
	}
	return p
}

// batch makes queries in one request. A query that is nil finds nothing.
func (s *Store) batch(ctx context.Context, queries []*api.QueryPoints) ([][]*api.ScoredPoint, error) {
	results := make([][]*api.ScoredPoint, len(queries))
	var asked []*api.QueryPoints
	var at []int
	for i, q := range queries {
		if q != nil {
			asked, at = append(asked, q), append(at, i)
		}
	}
	const doing = "searching"
	if len(asked) == 1 {
		reply, err := call(ctx, s.server, doing, s.server.client.Points().Query, asked[0])
		results[at[0]] = reply.GetResult()
		return results, err
	}
	if len(asked) == 0 {
		return results, nil
	}
	reply, err := call(ctx, s.server, doing, s.server.client.Points().QueryBatch, &api.QueryBatchPoints{CollectionName: s.options.Collection, QueryPoints: asked})
	if err != nil {
		return nil, err
	}
	if len(reply.GetResult()) != len(asked) {
		return nil, fmt.Errorf("searching Qdrant at %s: %d results for %d queries", s.options.Addr, len(reply.GetResult()), len(asked))
	}
	for i, result := range reply.GetResult() {
		results[at[i]] = result.GetResult()
	}
	return results, nil
}

// order scores and sorts candidates: those that hold an identifier asked for
// score 1 more for each kind of which they hold one, and the best for each
// identifier another 1, so that no identifier is crowded out by the passages of
// another.
func (r *run) order(candidates []*candidate, asked *asked) {
	better := func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.cosine, a.cosine), strings.Compare(a.passage.ID, b.passage.ID), strings.Compare(a.id, b.id))
	}
	for _, c := range candidates {
		c.score = c.fused
		if asked != nil {
			c.score += float64(asked.kindsHeld(c))
		}
	}
	if asked != nil {
		first := make(map[*candidate]bool)
		for i := range asked.identifiers {
			var holding, exact []*candidate
			for _, c := range candidates {
				about, exactly := asked.holds(c, i)
				if about {
					holding = append(holding, c)
				}
				if exactly {
					exact = append(exact, c)
				}
			}
			if len(exact) > 0 {
				holding = exact // before those with a span that covers it
			}
			if len(holding) > 0 {
				first[slices.MinFunc(holding, better)] = true
			}
		}
		for c := range first {
			c.score++
		}
	}
	slices.SortFunc(candidates, better)
}

// read fetches the candidates' passages and vectors, and the records of their
// documents. ok is false if some are not of the version that holds, or may not
// be all that this version has; those that are not are left out.
func (r *run) read(ctx context.Context, candidates []*candidate, pinned pins, start time.Time) (current []*candidate, ok bool, err error) {
	var ids []string
	found := make(map[string]map[string]bool)
	for _, c := range candidates {
		ids = append(ids, c.id)
		if found[c.document] == nil {
			found[c.document] = make(map[string]bool)
			ids = append(ids, r.recordID(c.document))
		}
		found[c.document][c.version] = true
	}
	asked := time.Now()
	points, err := r.get(ctx, "reading passages", ids, true)
	if err != nil {
		return nil, false, err
	}
	records := make(map[string]record)
	for document := range found {
		if p := points[r.recordID(document)]; p != nil {
			records[document] = recordOf(p.Payload)
		}
	}
	ok = pinned.check(found, records, &r.seen, start, asked)
	for _, c := range candidates {
		p := points[c.id]
		if p == nil || records[c.document].version != c.version && pinned[c.document].version != c.version {
			continue
		}
		c.passage = passageOf(p.Payload)
		v := denseOf(p)
		d := r.options.Layout.Distance
		for i, text := range r.vectors[:len(r.texts)] {
			if len(v) != len(text) {
				return nil, false, fmt.Errorf("reading passage %q from Qdrant at %s: it has a vector of %d numbers, not of %d", c.passage.ID, r.options.Addr, len(v), len(text))
			}
			m := d.measure(v, text)
			if i == 0 {
				c.cosine, c.measure = -2, m
			}
			c.cosine = max(c.cosine, cosine(v, text))
			if d.within(m, c.measure) {
				c.measure = m
			}
		}
		current = append(current, c)
	}
	return current, ok, nil
}

// collect takes the first candidates that differ in their text and meet the
// threshold, at most PerDocument of one document if that is not 0.
func (r *run) collect(candidates []*candidate, asked *asked) (hits []retrieval.Hit, ids []string) {
	texts, documents := make(map[string]bool), make(map[string]int)
	for _, c := range candidates {
		if len(hits) == r.Limit {
			break
		}
		text := strings.TrimSpace(c.passage.Text)
		if texts[text] || r.PerDocument > 0 && documents[c.document] == r.PerDocument ||
			r.Threshold != nil && !r.options.Layout.Distance.within(c.measure, *r.Threshold) {
			continue
		}
		texts[text] = true
		documents[c.document]++
		hit := retrieval.Hit{Passage: c.passage, Cosine: c.cosine}
		hit.Score = c.score
		if asked != nil {
			for _, id := range prepare.Passage(c.passage).Identifiers {
				if slices.ContainsFunc(asked.identifiers, func(w retrieval.Identifier) bool { return w.Key == id.Key }) {
					hit.Identifiers = append(hit.Identifiers, id.Text)
				}
			}
		}
		hits, ids = append(hits, hit), append(ids, c.id)
	}
	return hits, ids
}

// explainWords fills in the BM25 scores of hits, whose points have these ids.
func (s *Store) explainWords(ctx context.Context, texts []string, hits []retrieval.Hit, ids []string) error {
	at := make(map[string]int)
	var points []*api.PointId
	for i, id := range ids {
		at[id] = i
		points = append(points, api.NewIDUUID(id))
	}
	filter := s.mine([]*api.Condition{api.NewHasID(points...)}, nil)
	var queries []*api.QueryPoints
	for _, text := range texts {
		if indices, values := queryWords(text); len(indices) > 0 {
			queries = append(queries, &api.QueryPoints{CollectionName: s.options.Collection, Query: api.NewQuerySparse(indices, values), Using: api.PtrOf(vectorWords),
				Filter: filter, Limit: api.PtrOf(uint64(len(hits)))})
		}
	}
	results, err := s.batch(ctx, queries)
	if err != nil && !absent(err) {
		return err
	}
	for _, found := range results {
		for _, p := range found {
			hit := &hits[at[p.GetId().GetUuid()]]
			hit.BM25 = max(hit.BM25, float64(p.Score))
		}
	}
	return nil
}
