package qdrant

import (
	"cmp"
	"context"
	"maps"
	"slices"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

// asked are the identifiers that a query asks for. Identifiers of one family are
// one kind; one without a family is a kind of its own.
type asked struct {
	identifiers []retrieval.Identifier
	spanned     []map[string]bool // by identifier: the points with a span that covers it
	kinds       []kind
	whole       bool // some passage holds something of each kind and is about no neighbour
}

type kind struct {
	family  string // "" if it has none
	members []int  // of identifiers
}

// ask finds out what a query asks for. It is nil if it names no identifier.
func (s *Store) ask(ctx context.Context, texts []string, must, not []*api.Condition) (*asked, error) {
	identifiers, err := s.wanted(ctx, texts)
	if err != nil || len(identifiers) == 0 {
		return nil, err
	}
	a := &asked{identifiers: identifiers}
	place := make(map[string]int)
	for i, id := range identifiers {
		name := cmp.Or(id.Family, "="+id.Key)
		k, ok := place[name]
		if !ok {
			k = len(a.kinds)
			place[name] = k
			a.kinds = append(a.kinds, kind{family: id.Family})
		}
		a.kinds[k].members = append(a.kinds[k].members, i)
	}
	if a.spanned, err = s.spanned(ctx, identifiers); err != nil {
		return nil, err
	}
	if len(a.kinds) > 1 { // of a single kind it makes no difference
		a.whole, err = s.exists(ctx, "looking for a passage with all identifiers", append(slices.Clone(must), a.all()...), append(slices.Clone(not), a.wrong()...))
	}
	return a, err
}

// wanted gives the identifiers that texts ask for.
func (s *Store) wanted(ctx context.Context, texts []string) ([]retrieval.Identifier, error) {
	var failed error
	known := make(map[string]bool)
	identifiers := prepare.Wanted(texts, func(family string) bool {
		if family == "" || failed != nil {
			return false
		}
		there, ok := known[family]
		if !ok {
			there, failed = s.exists(ctx, "looking for identifiers", []*api.Condition{is(fieldFamilies, family)}, nil)
			known[family] = there
		}
		return there
	})
	return identifiers, failed
}

// spanned gives, for each identifier, the points that hold a span that covers
// it.
func (s *Store) spanned(ctx context.Context, identifiers []retrieval.Identifier) ([]map[string]bool, error) {
	out := make([]map[string]bool, len(identifiers))
	var families []string
	for _, id := range identifiers {
		if id.Family != "" && !slices.Contains(families, id.Family) {
			families = append(families, id.Family)
		}
	}
	if len(families) == 0 {
		return out, nil
	}
	err := s.visible(ctx, "looking for spans of identifiers", []*api.Condition{oneOf(fieldSpans, families...)}, nil, page/4, func(p *api.RetrievedPoint) bool {
		spans := prepare.Passage(passageOf(p.Payload)).Spans
		for i, id := range identifiers {
			if span, ok := spans[id.Family]; ok && span.Covers(id.Key) {
				if out[i] == nil {
					out[i] = make(map[string]bool)
				}
				out[i][p.GetId().GetUuid()] = true
			}
		}
		return true
	})
	return out, err
}

// holding is met by the passages that are about an identifier, because they hold
// it or a span that covers it.
func (a *asked) holding(i int) *api.Condition {
	key := is(fieldKeys, a.identifiers[i].Key)
	if len(a.spanned[i]) == 0 {
		return key
	}
	var ids []*api.PointId
	for id := range a.spanned[i] {
		ids = append(ids, api.NewIDUUID(id))
	}
	return anyOf(key, api.NewHasID(ids...))
}

func (a *asked) holdingKind(k kind) *api.Condition {
	var conditions []*api.Condition
	for _, i := range k.members {
		conditions = append(conditions, a.holding(i))
	}
	return anyOf(conditions...)
}

// all are conditions that together are met by the passages that hold something
// of each kind.
func (a *asked) all() []*api.Condition {
	var conditions []*api.Condition
	for _, k := range a.kinds {
		conditions = append(conditions, a.holdingKind(k))
	}
	return conditions
}

// wrong are conditions each of which is met by the passages that hold of one
// kind neighbours only.
func (a *asked) wrong() []*api.Condition {
	var conditions []*api.Condition
	for _, k := range a.kinds {
		if k.family != "" {
			conditions = append(conditions, allOf([]*api.Condition{is(fieldFamilies, k.family)}, []*api.Condition{a.holdingKind(k)}))
		}
	}
	return conditions
}

// leftOut are conditions each of which is met by passages that are left out:
// those that hold neighbours of what is asked for and nothing asked for, and, if
// some passage holds something of each kind, all that hold neighbours only of
// one. So "ERR-5172 on the AX-100" finds neither ERR-5171 of the AX-100 nor
// ERR-5172 of the AX-200.
func (a *asked) leftOut() []*api.Condition {
	if a == nil {
		return nil
	}
	wrong := a.wrong()
	if a.whole || len(wrong) == 0 {
		return wrong
	}
	return []*api.Condition{allOf([]*api.Condition{anyOf(wrong...)}, []*api.Condition{anyOf(a.all()...)})}
}

// holds reports whether a candidate is about an identifier, and whether it holds
// the very one.
func (a *asked) holds(c *candidate, i int) (about, exactly bool) {
	exactly = slices.Contains(c.keys, a.identifiers[i].Key)
	return exactly || a.spanned[i][c.id], exactly
}

// kindsHeld is the number of kinds of which a candidate holds one that is asked
// for.
func (a *asked) kindsHeld(c *candidate) int {
	n := 0
	for _, k := range a.kinds {
		if slices.ContainsFunc(k.members, func(i int) bool { about, _ := a.holds(c, i); return about }) {
			n++
		}
	}
	return n
}

// facetLimit is the most stored identifiers that are compared with an unknown
// one, the most frequent first.
const facetLimit = 10_000

// KnownIdentifiers says of each exact identifier in a text whether a passage
// holds it, and if none does, which stored ones it may be meant to be: of its
// own family all are compared, of others the 10,000 most frequent.
func (s *Store) KnownIdentifiers(ctx context.Context, text string) ([]retrieval.KnownIdentifier, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	texts := prepare.Texts([]string{text})
	if len(texts) == 0 || len(retrieval.ScanIdentifiers(texts[0])) == 0 {
		return nil, nil
	}
	var identifiers []retrieval.Identifier
	ok, err := s.attach(ctx)
	if err == nil && ok {
		identifiers, err = s.wanted(ctx, texts)
	} else if err == nil {
		identifiers = prepare.Wanted(texts, func(string) bool { return false })
	}
	if err != nil || len(identifiers) == 0 {
		return nil, err
	}
	spanned := make([]map[string]bool, len(identifiers))
	if ok {
		if spanned, err = s.spanned(ctx, identifiers); err != nil {
			return nil, err
		}
	}
	var out []retrieval.KnownIdentifier
	for i, id := range identifiers {
		k := retrieval.KnownIdentifier{Identifier: id.Text, Known: len(spanned[i]) > 0}
		if !k.Known && ok {
			if k.Known, err = s.exists(ctx, "looking for an identifier", []*api.Condition{is(fieldKeys, id.Key)}, nil); err != nil {
				return nil, err
			}
			if !k.Known {
				if k.Nearest, err = s.nearest(ctx, id); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, k)
	}
	return out, nil
}

// nearest gives the stored identifiers most like one, best first.
func (s *Store) nearest(ctx context.Context, id retrieval.Identifier) ([]string, error) {
	stored := make(map[string]retrieval.Identifier)
	var families [][]*api.Condition
	if id.Family != "" {
		families = append(families, []*api.Condition{is(fieldFamilies, id.Family)})
	}
	for _, must := range append(families, nil) {
		values, err := s.facet(ctx, fieldSure, must...)
		if err != nil {
			return nil, err
		}
		for _, text := range values {
			scanned := retrieval.ScanIdentifiers(text)
			if len(scanned) != 1 || !scanned[0].Sure {
				continue
			}
			if _, ok := stored[scanned[0].Key]; !ok {
				stored[scanned[0].Key] = scanned[0]
			}
		}
	}
	var texts []string
	for _, n := range prepare.Nearest(id, maps.Values(stored)) {
		if len(texts) == prepare.NearestLimit {
			break
		}
		// Some may be of points that readers do not see.
		ok, err := s.exists(ctx, "looking for an identifier", []*api.Condition{is(fieldKeys, n.Key)}, nil)
		if err != nil {
			return nil, err
		}
		if ok {
			texts = append(texts, n.Text)
		}
	}
	return texts, nil
}

// facet gives the values of a field, the most frequent first.
func (s *Store) facet(ctx context.Context, field string, must ...*api.Condition) ([]string, error) {
	reply, err := call(ctx, s.server, "listing identifiers", s.server.client.Points().Facet, &api.FacetCounts{
		CollectionName: s.options.Collection, Key: field, Filter: s.mine(append(must, is(fieldKind, kindPassage)), nil), Limit: api.PtrOf(uint64(facetLimit))})
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var values []string
	for _, hit := range reply.GetHits() {
		values = append(values, hit.GetValue().GetStringValue())
	}
	return values, nil
}
