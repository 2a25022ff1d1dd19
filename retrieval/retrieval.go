package retrieval

import (
	"context"
	"strings"
)

// Passage is a piece of a document, small enough to be read whole by the
// encoder and large enough to be understood alone.
type Passage struct {
	ID       string            `json:"id"`       // from document, place and content: same content, same id
	Document string            `json:"document"` // id of the document it is from (a path relative to the folder read)
	Title    string            `json:"title"`    // document title and headings, outermost first, joined by " > "
	Source   string            `json:"source"`   // where a person finds it: path, with #heading, page or row where known
	Text     string            `json:"text"`     // the passage itself, valid UTF-8, without its headings
	Metadata map[string]string `json:"metadata,omitempty"`
	Score    float64           `json:"score,omitempty"` // set by a Retriever: higher is better; comparable within one result only
}

// Query is what a Retriever is asked.
type Query struct {
	// Texts are wordings of one information need, the best one first; a
	// retriever ranks for each and fuses the rankings. At least one.
	Texts []string
	// Context is what the need arose from, such as the last turns of a dialogue
	// with the question; may be empty. It is ranked for as well, with the weight
	// ContextWeight, so that of passages that fit Texts about as well those come
	// first that fit the context. Identifiers in it are not asked for, and
	// Hit.Cosine and Hit.BM25 are not about it. A retriever may pass over it.
	Context string
	// Limit is the number of passages wanted; 0 means DefaultLimit.
	Limit int
	// Filter keeps passages whose metadata has all these values.
	Filter map[string]string
}

// ContextWeight is the weight of the rankings for Query.Context; those for the
// first of Query.Texts have 1. What fits the context alone thus stays behind what
// fits the question best. Chosen by bench/quality: more finds more for
// follow-ups, and less once the topic has changed.
const ContextWeight = 0.5

// DefaultLimit is the number of passages retrieved when a query names none.
const DefaultLimit = 6

// Retriever finds passages, best first. An empty result is not an error.
type Retriever interface {
	Retrieve(ctx context.Context, q Query) ([]Passage, error)
}

// Embedder turns texts into vectors of one length. The method set is that of
// langchaingo's embeddings.Embedder, so each serves as the other. An index and
// the queries against it must use the same embedder.
type Embedder interface {
	EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error)
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// Store holds passages by document and is kept up to date by Sync.
type Store interface {
	// Documents gives the fingerprint that each stored document was last put
	// with, by document id.
	Documents(ctx context.Context) (map[string]string, error)
	// Replace makes passages the whole content of the document, in one step for
	// readers; passages whose id is stored already are not embedded again.
	Replace(ctx context.Context, document, fingerprint string, passages []Passage) error
	// Delete removes documents and their passages; unknown ids are ignored.
	Delete(ctx context.Context, documents ...string) error
}

// Library is a Store whose content can be shown: the documents that there are,
// and the passage that a citation names.
type Library interface {
	Store
	// List tells of each stored document, sorted by id.
	List(ctx context.Context) ([]DocumentInfo, error)
	// Get gives the passages with these ids, in this order; unknown ids are left
	// out.
	Get(ctx context.Context, ids ...string) ([]Passage, error)
}

// DocumentInfo tells of a stored document.
type DocumentInfo struct {
	ID          string
	Title       string // what the document calls itself; "" if not known
	Passages    int
	Fingerprint string // that it was last put with
}

// TitleOf is the title of the document that passages are of, "" if there are none.
func TitleOf(passages []Passage) string {
	if len(passages) == 0 {
		return ""
	}
	title, _, _ := strings.Cut(passages[0].Title, titleSeparator)
	return title
}
