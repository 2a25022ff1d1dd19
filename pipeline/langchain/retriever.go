package langchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/tmc/langchaingo/embeddings"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/askback/askback/retrieval"
)

// The two embedder interfaces are one.
var (
	_ retrieval.Embedder  = embeddings.Embedder(nil)
	_ embeddings.Embedder = retrieval.Embedder(nil)
)

// Metadata keys under which a passage's fields stand in a schema.Document.
const (
	keyID       = "id"
	keyDocument = "document"
	keyTitle    = "title"
	keySource   = "source"
)

// Document is a passage as langchaingo's document: its fields beside the text
// stand in the metadata.
func Document(p retrieval.Passage) schema.Document {
	m := map[string]any{}
	for k, v := range p.Metadata {
		m[k] = v
	}
	m[keyID], m[keyDocument], m[keyTitle], m[keySource] = p.ID, p.Document, p.Title, p.Source
	return schema.Document{PageContent: p.Text, Metadata: m, Score: float32(p.Score)}
}

// Passage is langchaingo's document as a passage. A document without an id
// gets one from its content: same content, same id.
func Passage(d schema.Document) retrieval.Passage {
	p := retrieval.Passage{Text: d.PageContent, Score: float64(d.Score)}
	fields := map[string]*string{keyID: &p.ID, keyDocument: &p.Document, keyTitle: &p.Title, keySource: &p.Source}
	for k, v := range d.Metadata {
		s := fmt.Sprint(v)
		if f, ok := fields[k]; ok {
			*f = s
			continue
		}
		if p.Metadata == nil {
			p.Metadata = map[string]string{}
		}
		p.Metadata[k] = s
	}
	if p.Document == "" {
		p.Document = p.Source
	}
	if p.ID == "" {
		h := sha256.Sum256([]byte(p.Document + "\x00" + p.Title + "\x00" + p.Text))
		p.ID = hex.EncodeToString(h[:8])
	}
	return p
}

// Retriever is ours as a schema.Retriever.
type Retriever struct {
	r     retrieval.Retriever
	limit int
}

var _ schema.Retriever = Retriever{}

// NewRetriever offers r to langchaingo; limit passages are given for a query, 0
// means retrieval.DefaultLimit.
func NewRetriever(r retrieval.Retriever, limit int) Retriever { return Retriever{r, limit} }

// GetRelevantDocuments gives the passages for query, best first.
func (r Retriever) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	return documents(r.r.Retrieve(ctx, retrieval.Query{Texts: []string{query}, Limit: r.limit}))
}

func documents(ps []retrieval.Passage, err error) ([]schema.Document, error) {
	if err != nil {
		return nil, err
	}
	docs := make([]schema.Document, len(ps))
	for i, p := range ps {
		docs[i] = Document(p)
	}
	return docs, nil
}

// FromRetriever takes a langchaingo retriever. It is asked once for each
// wording of a query and the rankings are fused. A filter is refused, since
// the interface has no place for it.
func FromRetriever(r schema.Retriever) retrieval.Retriever { return fromRetriever{r} }

type fromRetriever struct{ r schema.Retriever }

func (f fromRetriever) Retrieve(ctx context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	if len(q.Filter) > 0 {
		return nil, fmt.Errorf("a langchaingo retriever takes no filter; put it into the retriever")
	}
	return fuse(q, func(text string) ([]schema.Document, error) { return f.r.GetRelevantDocuments(ctx, text) })
}

// FromVectorStore takes a langchaingo vector store as the retriever; options
// go with each search. A query's filter is handed on as
// vectorstores.WithFilters, in the store's own meaning.
func FromVectorStore(s vectorstores.VectorStore, options ...vectorstores.Option) retrieval.Retriever {
	return fromVectorStore{s, options}
}

type fromVectorStore struct {
	s       vectorstores.VectorStore
	options []vectorstores.Option
}

func (f fromVectorStore) Retrieve(ctx context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = retrieval.DefaultLimit
	}
	options := f.options
	if len(q.Filter) > 0 {
		filter := map[string]any{}
		for k, v := range q.Filter {
			filter[k] = v
		}
		options = append(slices.Clone(options), vectorstores.WithFilters(filter))
	}
	return fuse(q, func(text string) ([]schema.Document, error) {
		return f.s.SimilaritySearch(ctx, text, limit, options...)
	})
}

// fuse searches for each wording and fuses the rankings.
func fuse(q retrieval.Query, search func(string) ([]schema.Document, error)) ([]retrieval.Passage, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = retrieval.DefaultLimit
	}
	byID := map[string]retrieval.Passage{}
	var rankings []retrieval.Ranking[string]
	for _, text := range q.Texts {
		docs, err := search(text)
		if err != nil {
			return nil, err
		}
		var ranking retrieval.Ranking[string]
		for _, d := range docs {
			p := Passage(d)
			byID[p.ID] = p
			ranking.Items = append(ranking.Items, p.ID)
		}
		rankings = append(rankings, ranking)
	}
	var ps []retrieval.Passage
	for _, f := range retrieval.Fuse(rankings...) {
		p := byID[f.Item]
		if len(q.Texts) > 1 {
			p.Score = f.Score
		}
		ps = append(ps, p)
	}
	return ps[:min(len(ps), limit)], nil
}

// VectorStore is one of our stores as a vectorstores.VectorStore.
type VectorStore struct {
	s interface {
		retrieval.Store
		retrieval.Retriever
	}
}

var _ vectorstores.VectorStore = VectorStore{}

// NewVectorStore offers a store, which finds what it holds, to langchaingo.
func NewVectorStore(s interface {
	retrieval.Store
	retrieval.Retriever
}) VectorStore {
	return VectorStore{s}
}

// AddDocuments stores documents and gives their ids. Documents with the same
// "document" (or "source") in their metadata are one document of ours, which
// they replace whole; one without either stands alone. Adding the same content
// twice stores it once. A deduplicater is asked; the other options are refused:
// the name space is the tenant that the store is bound to, and the embedder is
// the store's.
func (v VectorStore) AddDocuments(ctx context.Context, docs []schema.Document, options ...vectorstores.Option) ([]string, error) {
	var o vectorstores.Options
	for _, set := range options {
		set(&o)
	}
	if o.NameSpace != "" || o.Embedder != nil || o.Filters != nil || o.ScoreThreshold != 0 {
		return nil, fmt.Errorf("adding documents: the options name space, embedder, filters and score threshold are not supported here")
	}
	ids := make([]string, 0, len(docs))
	by := map[string][]retrieval.Passage{}
	for _, d := range docs {
		if o.Deduplicater != nil && o.Deduplicater(ctx, d) {
			continue
		}
		p := Passage(d)
		if p.Document == "" {
			p.Document = p.ID
		}
		ids = append(ids, p.ID)
		if slices.ContainsFunc(by[p.Document], func(other retrieval.Passage) bool { return other.ID == p.ID }) {
			continue // the same twice
		}
		by[p.Document] = append(by[p.Document], p)
	}
	var all []retrieval.Chunked
	for _, id := range slices.Sorted(maps.Keys(by)) {
		h := sha256.New()
		for _, p := range by[id] {
			fmt.Fprintf(h, "%s\x00%s\x00", p.ID, p.Text)
		}
		all = append(all, retrieval.Chunked{Document: id, Fingerprint: hex.EncodeToString(h.Sum(nil)), Passages: by[id]})
	}
	if many, ok := v.s.(retrieval.BatchStore); ok {
		return ids, many.ReplaceAll(ctx, all)
	}
	for _, d := range all {
		if err := v.s.Replace(ctx, d.Document, d.Fingerprint, d.Passages); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// SimilaritySearch gives the passages for query, best first. Filters take
// map[string]any or map[string]string of metadata values that must be equal.
// With a score threshold, which must lie between 0 and 1, it gives those whose
// cosine to the query is at least that, and the cosine as their score; without
// one the score is the fused rank. The other options are refused.
func (v VectorStore) SimilaritySearch(ctx context.Context, query string, limit int, options ...vectorstores.Option) ([]schema.Document, error) {
	var o vectorstores.Options
	for _, set := range options {
		set(&o)
	}
	if o.NameSpace != "" || o.Embedder != nil || o.Deduplicater != nil {
		return nil, fmt.Errorf("similarity search: the options name space, embedder and deduplicater are not supported here")
	}
	q := retrieval.Query{Texts: []string{query}, Limit: limit}
	switch f := o.Filters.(type) {
	case nil:
	case map[string]string:
		q.Filter = f
	case map[string]any:
		q.Filter = map[string]string{}
		for k, value := range f {
			q.Filter[k] = fmt.Sprint(value)
		}
	default:
		return nil, fmt.Errorf("similarity search: filters of type %T; want map[string]any of values that must be equal", f)
	}
	if o.ScoreThreshold == 0 {
		return documents(v.s.Retrieve(ctx, q))
	}
	explainer, ok := v.s.(retrieval.Explainer)
	if !ok || o.ScoreThreshold < 0 || o.ScoreThreshold > 1 {
		return nil, fmt.Errorf("similarity search: a score threshold of %v is not supported here; want one between 0 and 1, and a store that knows cosines", o.ScoreThreshold)
	}
	hits, err := explainer.Explain(ctx, q)
	var near []retrieval.Passage
	for _, h := range hits {
		if h.Cosine >= float64(o.ScoreThreshold) {
			h.Score = h.Cosine
			near = append(near, h.Passage)
		}
	}
	return documents(near, err)
}
