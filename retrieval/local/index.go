package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

// Options say what an index is made of; Embedder must be set.
type Options struct {
	// Path is the SQLite file that the index is kept in, made if it is not
	// there; "" keeps it in memory alone.
	Path string
	// Embedder makes the vectors of passages and queries.
	Embedder retrieval.Embedder
	// Identity names the embedder and its version, such as its model and a hash
	// of the weights. An index on disk remembers it and refuses another, since
	// vectors of two embedders cannot be compared. "" is not compared.
	Identity string
	// Vectors holds vectors that are known already, by passage id, so that a
	// built-in knowledge base starts without embedding. They must be the
	// embedder's own for retrieval.EmbeddingText of the passage.
	Vectors map[string][]float32
	// LockWait is how long to wait for another process that is writing to the
	// file before giving up with ErrLocked; 0 means DefaultLockWait.
	LockWait time.Duration
	// PerDocument is the most passages of one document in a result; 0 is no
	// limit.
	PerDocument int
}

// DefaultLockWait is how long a process waits for another that is writing.
const DefaultLockWait = 5 * time.Second

// Index is the embedded index. It serves as Store and as Retriever, and is safe
// for concurrent use: readers see a document's old passages or its new ones,
// never some of each.
type Index struct {
	options Options

	write sync.Mutex // held while documents change, from the disk to the memory
	disk  *disk      // nil without a path

	mu     sync.RWMutex // guards what follows
	memory *memory
	closed bool
}

var (
	_ retrieval.Retriever       = (*Index)(nil)
	_ retrieval.Explainer       = (*Index)(nil)
	_ retrieval.IdentifierStore = (*Index)(nil)
	_ retrieval.BatchStore      = (*Index)(nil)
	_ retrieval.Library         = (*Index)(nil)
)

// ErrClosed is what a closed index answers.
var ErrClosed = errors.New("the index is closed")

// embedBatch is the number of texts embedded in one call.
const embedBatch = 64

// Open opens an index, and reads all of it into memory if it is on disk. Errors
// wrap ErrCorrupt, ErrForeign, ErrEmbedder or ErrLocked where they apply; the
// file is left as it is then.
func Open(ctx context.Context, o Options) (*Index, error) {
	if o.Embedder == nil {
		return nil, errors.New("opening the index: Options.Embedder is not set")
	}
	x := &Index{options: o, memory: newMemory(0)}
	if o.Path == "" {
		return x, nil
	}
	if o.LockWait <= 0 {
		o.LockWait = DefaultLockWait
	}
	d, err := openDisk(ctx, o.Path, o.Identity, o.LockWait)
	if err != nil {
		return nil, err
	}
	x.disk = d
	if err := x.reload(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return x, nil
}

// Close releases the file. The index cannot be used afterwards.
func (x *Index) Close() error {
	x.write.Lock()
	defer x.write.Unlock()
	x.mu.Lock()
	closed := x.closed
	x.closed = true
	x.mu.Unlock()
	if closed || x.disk == nil {
		return nil
	}
	x.disk.reading.Lock()
	defer x.disk.reading.Unlock()
	return x.disk.close()
}

// read calls f with the memory, which f must not keep.
func (x *Index) read(ctx context.Context, f func(m *memory)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.refresh(ctx); err != nil {
		return err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.closed {
		return ErrClosed
	}
	f(x.memory)
	return nil
}

// Retrieve finds passages by meaning (exact cosine) and by words (BM25) for each
// of the query's texts and fuses the rankings (retrieval.Fuse). Passages that
// hold an exact identifier of the query come first, those that hold most kinds
// of them before others, and passages that hold only neighbours of it (ERR-5171
// for ERR-5172) are left out, even if that leaves nothing. Of passages with the same text one is given. A query without text
// finds nothing; of a very long text the start and the end are searched for.
//
// Score is the fused score, 0 to 1, and for passages that hold an identifier
// asked for 1 or more on top (so that 1 divides the two). It says how well a passage is placed, not how relevant
// it is; for that see Explain.
func (x *Index) Retrieve(ctx context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	hits, err := x.Explain(ctx, q)
	if err != nil {
		return nil, err
	}
	return retrieval.Passages(hits), nil
}

// Explain retrieves and tells what the scores were made of.
func (x *Index) Explain(ctx context.Context, q retrieval.Query) ([]retrieval.Hit, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = retrieval.DefaultLimit
	}
	question := newQuestion(q)
	var dim, live int
	if err := x.read(ctx, func(m *memory) { dim, live = m.vectors.dim, m.live }); err != nil {
		return nil, err
	}
	if len(question.texts) == 0 || live == 0 {
		return nil, nil
	}
	question.vectors = make([][]float32, len(question.texts))
	for i, text := range question.texts {
		v, err := x.options.Embedder.EmbedQuery(ctx, text)
		if err == nil {
			v, err = prepare.Unit(v)
		}
		if err == nil && len(v) != dim {
			err = x.wrongDimension(len(v), dim)
		}
		if err != nil {
			return nil, fmt.Errorf("embedding the query: %w", err)
		}
		question.vectors[i] = v
	}
	var hits []retrieval.Hit
	err := x.read(ctx, func(m *memory) {
		if m.vectors.dim == dim {
			hits = m.search(question, limit, x.options.PerDocument)
		}
	})
	return hits, err
}

// KnownIdentifiers says of each exact identifier in a text whether a passage
// holds it, and if none does, which stored ones it may be meant to be.
func (x *Index) KnownIdentifiers(ctx context.Context, text string) ([]retrieval.KnownIdentifier, error) {
	texts := prepare.Texts([]string{text})
	if len(texts) == 0 {
		return nil, nil
	}
	var known []retrieval.KnownIdentifier
	err := x.read(ctx, func(m *memory) { known = m.knownIdentifiers(texts[0]) })
	return known, err
}

// Get gives the passages with these ids, in this order; unknown ids are left
// out.
func (x *Index) Get(ctx context.Context, ids ...string) ([]retrieval.Passage, error) {
	var passages []retrieval.Passage
	err := x.read(ctx, func(m *memory) {
		for _, id := range ids {
			if slot, ok := m.byID[id]; ok {
				p := m.entries[slot].passage
				p.Metadata = maps.Clone(p.Metadata)
				passages = append(passages, p)
			}
		}
	})
	return passages, err
}

// List tells of each stored document, sorted by id.
func (x *Index) List(ctx context.Context) ([]retrieval.DocumentInfo, error) {
	var list []retrieval.DocumentInfo
	err := x.read(ctx, func(m *memory) {
		for name, d := range m.documents {
			info := retrieval.DocumentInfo{ID: name, Passages: len(d.slots), Fingerprint: d.fingerprint}
			if len(d.slots) > 0 {
				info.Title = retrieval.TitleOf([]retrieval.Passage{m.entries[d.slots[0]].passage})
			}
			list = append(list, info)
		}
	})
	slices.SortFunc(list, func(a, b retrieval.DocumentInfo) int { return strings.Compare(a.ID, b.ID) })
	return list, err
}

// Len is the number of passages in memory.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.memory.live
}

// Documents gives the fingerprint of each stored document by its id.
func (x *Index) Documents(ctx context.Context) (map[string]string, error) {
	documents := make(map[string]string)
	err := x.read(ctx, func(m *memory) {
		for name, d := range m.documents {
			documents[name] = d.fingerprint
		}
	})
	return documents, err
}

// Replace makes passages the whole content of the document.
func (x *Index) Replace(ctx context.Context, document, fingerprint string, passages []retrieval.Passage) error {
	return x.ReplaceAll(ctx, []retrieval.Chunked{{Document: document, Fingerprint: fingerprint, Passages: passages}})
}

// ReplaceAll replaces several documents in one step; if it fails, none of them
// has changed.
func (x *Index) ReplaceAll(ctx context.Context, documents []retrieval.Chunked) error {
	if err := prepare.Documents(documents); err != nil {
		return err
	}
	vectors, err := x.embed(ctx, documents)
	if err != nil {
		return err
	}
	changes := make([]change, len(documents))
	for i, d := range documents {
		changes[i] = change{name: d.Document, fingerprint: d.Fingerprint}
		for _, p := range d.Passages {
			changes[i].entries = append(changes[i].entries, newEntry(p, vectors[p.ID]))
		}
	}
	return x.apply(ctx, changes)
}

// Delete removes documents and their passages; unknown ids are ignored.
func (x *Index) Delete(ctx context.Context, documents ...string) error {
	var changes []change
	for _, name := range documents {
		changes = append(changes, change{name: name, gone: true})
	}
	return x.apply(ctx, changes)
}

// embed gives the unit vectors of the passages by id: those stored or known
// already, and the embedder's for the others.
func (x *Index) embed(ctx context.Context, documents []retrieval.Chunked) (map[string][]float32, error) {
	vectors := make(map[string][]float32)
	var missing []retrieval.Passage
	err := x.read(ctx, func(m *memory) {
		for _, d := range documents {
			for _, p := range d.Passages {
				slot, ok := m.byID[p.ID]
				if ok && retrieval.EmbeddingText(m.entries[slot].passage) == retrieval.EmbeddingText(p) {
					vectors[p.ID] = slices.Clone(m.vectors.at(slot))
				} else {
					missing = append(missing, p)
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var texts, ids []string
	for _, p := range missing {
		known, ok := x.options.Vectors[p.ID]
		if !ok {
			texts, ids = append(texts, retrieval.EmbeddingText(p)), append(ids, p.ID)
			continue
		}
		if vectors[p.ID], err = prepare.Unit(known); err != nil {
			return nil, fmt.Errorf("the known vector of passage %q: %w", p.ID, err)
		}
	}
	for start := 0; start < len(texts); start += embedBatch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := min(start+embedBatch, len(texts))
		got, err := x.options.Embedder.EmbedDocuments(ctx, texts[start:end])
		if err == nil && len(got) != end-start {
			err = fmt.Errorf("the embedder gave %d vectors for %d texts", len(got), end-start)
		}
		if err != nil {
			return nil, fmt.Errorf("embedding %d passages from %q on: %w", end-start, ids[start], err)
		}
		for i, v := range got {
			if vectors[ids[start+i]], err = prepare.Unit(v); err != nil {
				return nil, fmt.Errorf("embedding passage %q: %w", ids[start+i], err)
			}
		}
	}
	return vectors, nil
}

// A change is what becomes of one document.
type change struct {
	name, fingerprint string
	entries           []*entry
	gone              bool
}

// apply makes changes on disk, in one transaction, then in memory, in one step.
func (x *Index) apply(ctx context.Context, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	x.write.Lock()
	defer x.write.Unlock()
	if x.isClosed() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if x.disk == nil {
		if err := x.check(changes); err != nil {
			return err
		}
		x.publish(changes)
		return nil
	}
	return x.store(ctx, changes)
}

func (x *Index) isClosed() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.closed
}

// check refuses vectors of another length than those stored and ids that belong
// to another document. It is called with write held.
func (x *Index) check(changes []change) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	dim := x.memory.vectors.dim
	changing := make(map[string]bool)
	for _, c := range changes {
		changing[c.name] = true
	}
	for _, c := range changes {
		for _, e := range c.entries {
			if dim == 0 {
				dim = len(e.vector)
			}
			if len(e.vector) != dim {
				return x.wrongDimension(len(e.vector), dim)
			}
			slot, ok := x.memory.byID[e.passage.ID]
			if !ok {
				continue
			}
			if owner := x.memory.entries[slot].passage.Document; !changing[owner] {
				return fmt.Errorf("%w: passage %q of document %q is stored already as one of document %q", retrieval.ErrInvalid, e.passage.ID, c.name, owner)
			}
		}
	}
	return nil
}

// publish makes the changes in memory. All documents go before any comes, so
// that a passage id may move from one to another.
func (x *Index) publish(changes []change) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range changes {
		x.memory.remove(c.name)
	}
	for _, c := range changes {
		if !c.gone {
			x.memory.replace(c.name, c.fingerprint, c.entries)
		}
	}
	x.memory.pack()
}
