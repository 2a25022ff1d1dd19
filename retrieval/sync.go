package retrieval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is wrapped by the error for a passage that no store takes: text,
// title, source, an id or metadata that is not valid UTF-8, or no text or id.
var ErrInvalid = errors.New("invalid passage")

// ErrFull is wrapped by the error for a store that has no room left. Nothing was changed.
var ErrFull = errors.New("there is no room left for documents")

// Validate checks what every store requires of a passage of the document. The
// error wraps ErrInvalid and names the document and the passage.
func (p Passage) Validate() error {
	fail := func(what string) error {
		return fmt.Errorf("%w: document %q, passage %q: %s", ErrInvalid, p.Document, p.ID, what)
	}
	switch {
	case p.ID == "":
		return fail("it has no id")
	case p.Document == "":
		return fail("it names no document")
	case p.Text == "":
		return fail("it has no text")
	}
	for _, field := range []struct{ name, value string }{
		{"id", p.ID}, {"document id", p.Document}, {"title", p.Title}, {"source", p.Source}, {"text", p.Text},
	} {
		if !utf8.ValidString(field.value) {
			return fail("its " + field.name + " is not valid UTF-8; convert the file to UTF-8 before it is indexed")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Metadata)) {
		if !utf8.ValidString(key) {
			return fail(fmt.Sprintf("its metadata key %q is not valid UTF-8", key))
		}
		if !utf8.ValidString(p.Metadata[key]) {
			return fail(fmt.Sprintf("its metadata value for %q is not valid UTF-8", key))
		}
	}
	return nil
}

// ValidateDocument checks the passages of one document for a store: each is
// valid, belongs to the document, and has an id of its own. The error wraps
// ErrInvalid.
func ValidateDocument(document string, passages []Passage) error {
	if document == "" || !utf8.ValidString(document) {
		return fmt.Errorf("%w: document id %q is empty or not valid UTF-8", ErrInvalid, document)
	}
	seen := make(map[string]bool, len(passages))
	for _, p := range passages {
		if err := p.Validate(); err != nil {
			return err
		}
		if p.Document != document {
			return fmt.Errorf("%w: passage %q belongs to document %q, not to %q", ErrInvalid, p.ID, p.Document, document)
		}
		if seen[p.ID] {
			return fmt.Errorf("%w: document %q: two passages have the id %q", ErrInvalid, document, p.ID)
		}
		seen[p.ID] = true
	}
	return nil
}

// EmbeddingText is what a store embeds of a passage: its headings, then its
// text. A passage under "Leave > Contractors" thus differs from the same words
// under "Leave > Employees".
func EmbeddingText(p Passage) string {
	if p.Title == "" {
		return p.Text
	}
	return p.Title + "\n" + p.Text
}

// Chunked is a document cut into passages.
type Chunked struct {
	Document    string
	Fingerprint string
	Passages    []Passage
}

// BatchStore is what a Store also offers if it is faster with several documents
// at a time, because their passages are embedded together. ReplaceAll does for
// each document what Replace does; readers see each document change in one
// step. If it fails, each document is whole, either the old or the new.
type BatchStore interface {
	Store
	ReplaceAll(ctx context.Context, documents []Chunked) error
}

// Input is a document that Sync is to bring into a store.
type Input struct {
	// Document is the document's id, such as its path in the folder.
	Document string
	// Fingerprint changes whenever the passages would: it covers the content and
	// the settings and version of everything that makes passages of it.
	Fingerprint string
	// Passages reads and cuts the document. It is called only if the store does
	// not hold the document with this fingerprint.
	Passages func() ([]Passage, error)
}

// Inputs makes inputs of documents: they are cut by Chunk with these options,
// and their fingerprints cover what the document says and how it is cut. An
// error is passed on, with the document's id if it has one.
func Inputs(documents iter.Seq2[Document, error], o ChunkOptions) iter.Seq2[Input, error] {
	return func(yield func(Input, error) bool) {
		cut := cutting(o)
		for d, err := range documents {
			input := Input{Document: d.ID}
			if err == nil {
				h := sha256.New()
				hashStrings(h, cut, d.Fingerprint())
				input.Fingerprint = hex.EncodeToString(h.Sum(nil)[:16])
				input.Passages = func() ([]Passage, error) { return Chunk(d, o), nil }
			}
			if !yield(input, err) {
				return
			}
		}
	}
}

// cutting tells by its effect how Chunk cuts with these options: it gives the
// passages, as one text, of a document that has something of everything. So a
// new token counter or a change of Chunk shows in the fingerprints.
func cutting(o ChunkOptions) string {
	d := Document{ID: "sample", Title: "Sample of everything"}
	words := strings.Repeat("A sentence about unbelievably ordinary things, 25 in number. Ein Satz über Größe; 文字と文字。 ", 40)
	for kind := Paragraph; kind <= Code; kind++ {
		headings := []string{"First", strconv.Itoa(int(kind))}
		d.Blocks = append(d.Blocks,
			Block{Kind: kind, Headings: headings, Text: "a, b\n- c, d\n", Header: "head, er\n"},
			Block{Kind: kind, Headings: headings, Text: words + strings.Repeat("\n- one | two", 200), Header: "head, er\n"})
	}
	var all strings.Builder
	for _, p := range Chunk(d, o) {
		fmt.Fprintf(&all, "%q\n", []string{p.ID, p.Title, p.Source, p.Text})
	}
	return all.String()
}

// Progress is how far a Sync has come.
type Progress struct {
	Done     int    // documents dealt with
	Total    int    // documents in all, 0 if not known
	Document string // the one dealt with last
}

// SyncOptions change how Sync works; the zero value serves.
type SyncOptions struct {
	// Total is the number of documents to come, for Progress; 0 if not known.
	Total int
	// Progress, if set, is called after each document, from Sync's goroutine.
	Progress func(Progress)
	// Batch is the number of passages after which those gathered are stored; a
	// document is never split, so that memory holds one batch and one document.
	// 0 means 64.
	Batch int
	// Keep leaves documents in the store that are not among the inputs.
	Keep bool
}

// Skipped is a document that could not be read or is not valid. What the store
// held of it before stays, and so does what it held under its path, if it is a
// folder.
type Skipped struct {
	Document string
	Err      error
}

// SyncReport tells what Sync did. After an error it tells what was done until
// then, which stays done.
type SyncReport struct {
	Added, Changed, Unchanged, Deleted []string // document ids, in the order dealt with
	Skipped                            []Skipped
	Passages                           int // passages of the added and changed documents
}

// UploadMark begins the fingerprint of a document that was put into a store by
// hand, and not by Sync. Sync deletes none such, though inputs may replace it.
const UploadMark = "upload:"

// Uploaded reports whether a fingerprint is that of such a document.
func Uploaded(fingerprint string) bool { return strings.HasPrefix(fingerprint, UploadMark) }

// Sync brings a store up to date with documents: those with a new fingerprint
// replace what was stored of them, those with the same are left alone, and
// those no longer there are deleted, unless they were put there by hand
// (UploadMark). A document that fails is skipped and
// reported, and the rest goes on (a document without passages is none such; it
// is stored empty): an error in the sequence that comes with a
// document id, an error of Input.Passages, or an invalid passage. Sync itself
// fails if the sequence gives an error without a document id, the store fails,
// or ctx ends; nothing is deleted then, and all documents stored so far stay
// stored, so that the next Sync goes on from there.
func Sync(ctx context.Context, store Store, documents iter.Seq2[Input, error], o SyncOptions) (SyncReport, error) {
	stored, err := store.Documents(ctx)
	if err != nil {
		return SyncReport{}, fmt.Errorf("reading what the store holds: %w", err)
	}
	s := syncer{store: store, options: o, stored: stored, seen: make(map[string]bool)}
	if s.options.Batch <= 0 {
		s.options.Batch = 64
	}
	for input, err := range documents {
		if err != nil && input.Document == "" {
			err = errors.Join(fmt.Errorf("listing documents: %w", err), s.flush(ctx))
			return s.report, err
		}
		if err := ctx.Err(); err != nil {
			return s.report, err
		}
		if err := s.take(ctx, input, err); err != nil {
			return s.report, err
		}
	}
	if err := s.flush(ctx); err != nil {
		return s.report, err
	}
	return s.report, s.deleteGone(ctx)
}

type syncer struct {
	store   Store
	options SyncOptions
	stored  map[string]string
	seen    map[string]bool
	report  SyncReport
	batch   []Chunked
	size    int // passages in batch
	done    int
}

// take deals with one document, whose reading may have failed.
func (s *syncer) take(ctx context.Context, input Input, err error) error {
	document := input.Document
	switch {
	case s.seen[document]:
		err = fmt.Errorf("%w: two documents have the id %q; the first was kept", ErrInvalid, document)
		s.report.Skipped = append(s.report.Skipped, Skipped{document, err})
		s.progress(document)
		return nil
	case err == nil && s.holds(document, input.Fingerprint):
		s.seen[document] = true
		s.report.Unchanged = append(s.report.Unchanged, document)
		s.progress(document)
		return nil
	}
	s.seen[document] = true
	var passages []Passage
	if err == nil {
		passages, err = input.Passages()
	}
	if err == nil {
		err = ValidateDocument(document, passages)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.report.Skipped = append(s.report.Skipped, Skipped{document, err})
		s.progress(document)
		return nil
	}
	s.batch = append(s.batch, Chunked{document, input.Fingerprint, passages})
	s.size += len(passages)
	if s.size >= s.options.Batch || len(s.batch) >= s.options.Batch {
		return s.flush(ctx)
	}
	return nil
}

func (s *syncer) holds(document, fingerprint string) bool {
	stored, ok := s.stored[document]
	return ok && stored == fingerprint
}

// flush stores the documents gathered.
func (s *syncer) flush(ctx context.Context) error {
	batch := s.batch
	s.batch, s.size = nil, 0
	if many, ok := s.store.(BatchStore); ok && len(batch) > 0 {
		if err := many.ReplaceAll(ctx, batch); err != nil {
			return err
		}
		for _, c := range batch {
			s.replaced(c)
		}
		return nil
	}
	for _, c := range batch {
		if err := s.store.Replace(ctx, c.Document, c.Fingerprint, c.Passages); err != nil {
			return err
		}
		s.replaced(c)
	}
	return nil
}

func (s *syncer) replaced(c Chunked) {
	if _, ok := s.stored[c.Document]; ok {
		s.report.Changed = append(s.report.Changed, c.Document)
	} else {
		s.report.Added = append(s.report.Added, c.Document)
	}
	s.report.Passages += len(c.Passages)
	s.progress(c.Document)
}

func (s *syncer) progress(document string) {
	s.done++
	if s.options.Progress != nil {
		s.options.Progress(Progress{Done: s.done, Total: s.options.Total, Document: document})
	}
}

func (s *syncer) deleteGone(ctx context.Context) error {
	if s.options.Keep {
		return nil
	}
	var gone []string
	for _, document := range slices.Sorted(maps.Keys(s.stored)) {
		if !s.seen[document] && !Uploaded(s.stored[document]) && !s.underSkipped(document) {
			gone = append(gone, document)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := s.store.Delete(ctx, gone...); err != nil {
		return fmt.Errorf("deleting documents that are gone: %w", err)
	}
	s.report.Deleted = gone
	return nil
}

// underSkipped reports whether a document stands in a folder that could not be read.
func (s *syncer) underSkipped(document string) bool {
	return slices.ContainsFunc(s.report.Skipped, func(k Skipped) bool {
		return strings.HasPrefix(document, k.Document+"/")
	})
}
