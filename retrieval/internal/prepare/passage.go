package prepare

import (
	"fmt"
	"strings"

	"github.com/askback/askback/retrieval"
)

// Parameters of BM25, the usual ones. Source: Robertson, Zaragoza, "The
// Probabilistic Relevance Framework: BM25 and Beyond", 2009. The inverse
// document frequency is the one of Lucene, which is never negative.
const (
	K1          = 1.2
	B           = 0.75
	titleWeight = 2 // a word of the title counts as often in the text
)

// Prepared is what an index searches a passage by, beside its vector.
type Prepared struct {
	Words       []Word                 // each once, in no order
	Length      float32                // the counts added up
	Identifiers []retrieval.Identifier // each key once, in order
	Spans       map[string]Span        // the last of each family
}

// Word says how often a passage holds a word, those in the title weighted.
type Word struct {
	Text  string
	Count float32
}

// Span is a passage's "ERR-5100 to ERR-5199", which is about each code between.
type Span struct {
	From, To string // keys
}

// Covers reports whether an identifier's key lies in the span.
func (s Span) Covers(key string) bool {
	return len(key) == len(s.From) && len(key) == len(s.To) && s.From <= key && key <= s.To
}

// Passage cuts a passage into words and identifiers.
func Passage(p retrieval.Passage) Prepared {
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	title, text := retrieval.ScanIdentifiers(p.Title), retrieval.ScanIdentifiers(p.Text)
	clear(a.counts)
	for _, t := range a.terms(p.Title, title) {
		a.counts[t] += titleWeight
	}
	for _, t := range a.terms(p.Text, text) {
		a.counts[t]++
	}
	out := Prepared{Words: make([]Word, 0, len(a.counts)), Spans: spans(p.Text, text)}
	for word, n := range a.counts {
		out.Words = append(out.Words, Word{word, n})
		out.Length += n
	}
	at := make(map[string]int)
	for _, id := range append(title, text...) {
		if i, ok := at[id.Key]; !ok {
			at[id.Key] = len(out.Identifiers)
			out.Identifiers = append(out.Identifiers, id)
		} else if id.Sure && !out.Identifiers[i].Sure {
			out.Identifiers[i] = id
		}
	}
	return out
}

// spans finds pairs of neighbouring identifiers of a text that are joined as the
// ends of a span.
func spans(text string, identifiers []retrieval.Identifier) map[string]Span {
	var found map[string]Span
	for i := 1; i < len(identifiers); i++ {
		from, to := identifiers[i-1], identifiers[i]
		if !from.Sure || from.Family == "" || from.Family != to.Family || from.Key >= to.Key {
			continue
		}
		for _, joint := range []string{" to ", " through ", " until ", " - ", "-", " – ", "–", " — "} {
			if strings.Contains(text, from.Text+joint+to.Text) {
				if found == nil {
					found = make(map[string]Span)
				}
				found[from.Family] = Span{From: from.Key, To: to.Key}
			}
		}
	}
	return found
}

// Documents checks the documents of one write: each is valid, and no document
// and no passage id comes twice. Errors wrap retrieval.ErrInvalid.
func Documents(documents []retrieval.Chunked) error {
	owner := make(map[string]string)
	names := make(map[string]bool)
	for _, d := range documents {
		if err := retrieval.ValidateDocument(d.Document, d.Passages); err != nil {
			return err
		}
		if names[d.Document] {
			return fmt.Errorf("%w: document %q is given twice", retrieval.ErrInvalid, d.Document)
		}
		names[d.Document] = true
		for _, p := range d.Passages {
			if other, ok := owner[p.ID]; ok {
				return fmt.Errorf("%w: documents %q and %q both have a passage %q", retrieval.ErrInvalid, other, d.Document, p.ID)
			}
			owner[p.ID] = d.Document
		}
	}
	return nil
}
