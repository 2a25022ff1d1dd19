package qdrant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	api "github.com/qdrant/go-client/qdrant"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

// embedBatch is the number of texts embedded in one call.
const embedBatch = 64

// Replace makes passages the whole content of the document.
func (s *Store) Replace(ctx context.Context, document, fingerprint string, passages []retrieval.Passage) error {
	return s.ReplaceAll(ctx, []retrieval.Chunked{{Document: document, Fingerprint: fingerprint, Passages: passages}})
}

// ReplaceAll replaces several documents, each in one step for readers. If it
// fails, or the process ends in between, each document is whole, the old or the
// new; doing it again completes it, embeds nothing that was stored already, and
// doubles nothing.
func (s *Store) ReplaceAll(ctx context.Context, documents []retrieval.Chunked) error {
	if err := prepare.Documents(documents); err != nil {
		return err
	}
	for _, d := range documents {
		if !utf8.ValidString(d.Fingerprint) {
			return fmt.Errorf("%w: document %q: its fingerprint is not valid UTF-8", retrieval.ErrInvalid, d.Document)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for part := range slices.Chunk(documents, maxDocuments) {
		if err := s.replace(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// maxDocuments is the most documents written together, since requests name them.
const maxDocuments = 256

func (s *Store) replace(ctx context.Context, documents []retrieval.Chunked) error {
	names := make([]string, len(documents))
	for i, d := range documents {
		names[i] = d.Document
	}
	unlock, err := s.locks.lock(ctx, names)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.adopt(ctx); err != nil {
		return err
	}
	w := &writing{Store: s}
	for _, d := range documents {
		w.documents = append(w.documents, &writtenDocument{Chunked: d, version: versionOf(d.Passages)})
	}
	return w.run(ctx)
}

// writing is one write of documents.
type writing struct {
	*Store
	documents []*writtenDocument
	thorough  bool // look at the points of documents whose record says that they are stored
}

type writtenDocument struct {
	retrieval.Chunked
	version string
	before  record          // what its record says
	known   bool            // it has a record
	old     map[string]bool // its other versions of which there are points
	stored  map[string]bool
	vectors map[string][]float32 // of its stored passages, by id and embeddedHash
}

func vectorKey(id, hash string) string { return id + "\x00" + hash }

// run goes through the steps that the package's comment tells. Whenever it is cut
// off, readers see each document as it was, or as it is to be.
func (w *writing) run(ctx context.Context) error {
	err := w.store(ctx)
	if errors.Is(err, ErrConflict) {
		// Points are missing that were there, or should have been: once more, and
		// nothing is taken for granted.
		w.thorough = true
		err = w.store(ctx)
	}
	if err != nil {
		return err
	}
	return w.commit(ctx)
}

// store makes sure that all points of the new versions are there.
func (w *writing) store(ctx context.Context) error {
	if err := w.read(ctx); err != nil {
		return err
	}
	if err := w.upload(ctx, w.missing()); err != nil {
		return err
	}
	return w.verify(ctx)
}

// read finds out what is stored of the documents: their records, and of those
// that have one their points.
func (w *writing) read(ctx context.Context) error {
	if ok, err := w.attach(ctx); err != nil || !ok {
		return err
	}
	ids := make([]string, len(w.documents))
	for i, d := range w.documents {
		ids[i] = w.recordID(d.Document)
	}
	records, err := w.get(ctx, "reading what is stored of documents", ids, false)
	if err != nil {
		return err
	}
	byName := make(map[string]*writtenDocument)
	var changing []string
	for i, d := range w.documents {
		if p, ok := records[ids[i]]; ok {
			d.known, d.before = true, recordOf(p.Payload)
			d.stored, d.old, d.vectors = make(map[string]bool), make(map[string]bool), make(map[string][]float32)
			if d.before.version != d.version || w.thorough {
				byName[d.Document] = d
				changing = append(changing, d.Document)
			}
		}
	}
	if len(changing) == 0 {
		return nil
	}
	filter := w.mine([]*api.Condition{is(fieldKind, kindPassage), oneOf(fieldDocument, changing...)}, nil)
	for p, err := range w.scroll(ctx, "reading the passages stored of documents", filter, page/4, api.NewWithPayloadInclude(fieldDocument, fieldVersion, fieldID, fieldEmbedded), api.NewWithVectorsInclude(vectorDense)) {
		if err != nil {
			return err
		}
		if d := byName[p.Payload[fieldDocument].GetStringValue()]; d != nil {
			d.stored[p.GetId().GetUuid()] = true
			if version := p.Payload[fieldVersion].GetStringValue(); version != d.version {
				d.old[version] = true
			}
			d.vectors[vectorKey(p.Payload[fieldID].GetStringValue(), p.Payload[fieldEmbedded].GetStringValue())] = denseOf(p)
		}
	}
	return nil
}

// denseOf reads the embedder's vector of a point.
func denseOf(p *api.RetrievedPoint) []float32 {
	v := p.GetVectors().GetVectors().GetVectors()[vectorDense]
	if dense := v.GetDense(); dense != nil {
		return dense.GetData()
	}
	//lint:ignore SA1019 older servers fill in this field
	return v.GetData()
}

// missing are passages that have to be stored; with a vector if it is known.
type missing struct {
	passage retrieval.Passage
	version string
	vector  []float32
}

// missing lists what has to be stored.
func (w *writing) missing() []missing {
	var points []missing
	for _, d := range w.documents {
		if d.known && d.before.version == d.version && !w.thorough {
			continue
		}
		for _, p := range d.Passages {
			if !d.stored[w.passageID(d.Document, d.version, p.ID)] {
				points = append(points, missing{p, d.version, d.vectors[vectorKey(p.ID, embeddedHash(p))]})
			}
		}
	}
	return points
}

// announce leaves a record of documents that have none, so that what a crash
// leaves of them is known. One that another process has made whole in the
// meantime stays.
func (w *writing) announce(ctx context.Context) error {
	var fresh []*api.PointStruct
	for _, d := range w.documents {
		if !d.known && len(d.Passages) > 0 {
			fresh = append(fresh, w.recordPoint(record{document: d.Document, committed: time.Now()}))
		}
	}
	return w.putRecords(ctx, fresh, w.mine([]*api.Condition{is(fieldVersion, "")}, nil))
}

// upload embeds and stores passages, several batches at a time. Embedding waits
// while all uploads are busy.
func (w *writing) upload(ctx context.Context, points []missing) error {
	uploads, within := errgroup.WithContext(ctx)
	uploads.SetLimit(w.options.Parallel)
	b := batches{limit: w.options.BatchBytes, send: func(batch []*api.PointStruct) {
		uploads.Go(func() error { return w.put(within, batch, !w.options.NoWait, nil) })
	}}
	err := func() error {
		for start := 0; start < len(points); start += embedBatch {
			if err := within.Err(); err != nil {
				return err
			}
			part := points[start:min(start+embedBatch, len(points))]
			if err := w.embed(within, part); err != nil {
				return err
			}
			// Now that the vectors' length is known, and the embedder works.
			if err := w.ensure(within, len(part[0].vector)); err != nil {
				return err
			}
			if start == 0 {
				if err := w.announce(within); err != nil {
					return err
				}
			}
			for _, m := range part {
				if err := b.add(w.point(m.passage, m.version, m.vector)); err != nil {
					return err
				}
			}
		}
		b.flush()
		return nil
	}()
	failed := uploads.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return failed // which may have been why the embedding was cut off
	}
	return err
}

// batches gathers points until they would be too large for one message.
type batches struct {
	limit, size int
	points      []*api.PointStruct
	send        func([]*api.PointStruct)
}

// batchPoints is the most points of one write.
const batchPoints = 256

func (b *batches) add(p *api.PointStruct) error {
	size := proto.Size(p) + 16 // and what frames it
	if size > b.limit {
		return fmt.Errorf("%w: document %q, passage %q: it takes %d bytes with its vector, a write may have %d (Options.BatchBytes)", retrieval.ErrInvalid,
			p.Payload[fieldDocument].GetStringValue(), p.Payload[fieldID].GetStringValue(), size, b.limit)
	}
	if b.size+size > b.limit || len(b.points) == batchPoints {
		b.flush()
	}
	b.points = append(b.points, p)
	b.size += size
	return nil
}

func (b *batches) flush() {
	if len(b.points) > 0 {
		b.send(b.points)
	}
	b.points, b.size = nil, 0
}

// embed fills in the vectors that are not known.
func (s *Store) embed(ctx context.Context, passages []missing) error {
	var texts []string
	var at []int
	for i, m := range passages {
		if m.vector == nil {
			texts, at = append(texts, retrieval.EmbeddingText(m.passage)), append(at, i)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	vectors, err := s.options.Embedder.EmbedDocuments(ctx, texts)
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("the embedder gave %d vectors for %d texts", len(vectors), len(texts))
	}
	if err != nil {
		return fmt.Errorf("embedding %d passages from %q on: %w", len(texts), passages[at[0]].passage.ID, err)
	}
	for i, v := range vectors {
		m := &passages[at[i]]
		if m.vector, err = s.vector(v); err != nil {
			return fmt.Errorf("embedding passage %q: %w", m.passage.ID, err)
		}
		if len(m.vector) != len(passages[0].vector) {
			return fmt.Errorf("embedding passage %q: the embedder gave vectors of %d and of %d numbers", m.passage.ID, len(m.vector), len(passages[0].vector))
		}
	}
	return nil
}

// vector checks a vector and, if only its direction counts, makes it a unit one.
func (s *Store) vector(v []float32) ([]float32, error) {
	unit, err := prepare.Unit(v)
	if err != nil || s.options.Layout.Distance == Cosine {
		return unit, err
	}
	return v, nil
}

// put stores points. It may be repeated: the same points are the same.
func (s *Store) put(ctx context.Context, points []*api.PointStruct, wait bool, replacing *api.Filter) error {
	_, err := call(ctx, s.server, fmt.Sprintf("storing %d points", len(points)), s.server.client.Points().Upsert,
		&api.UpsertPoints{CollectionName: s.options.Collection, Points: points, Wait: &wait, UpdateFilter: replacing})
	return err
}

// verify makes sure that all points of the new versions are there, whatever
// became of the uploads: without them the documents would lose passages.
func (w *writing) verify(ctx context.Context) error {
	var versions []*api.Condition
	var want uint64
	for _, d := range w.documents {
		if len(d.Passages) > 0 {
			versions = append(versions, allOf([]*api.Condition{is(fieldDocument, d.Document), is(fieldVersion, d.version)}, nil))
			want += uint64(len(d.Passages))
		}
	}
	if want == 0 {
		return nil
	}
	deadline := time.Now().Add(max(w.options.RetryFor, 0))
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		have, err := w.count(ctx, w.mine([]*api.Condition{is(fieldKind, kindPassage), anyOf(versions...)}, nil))
		if err != nil || have == want {
			return err
		}
		// Without waiting for each write, they may still be on their way.
		if !w.options.NoWait || have > want || time.Now().After(deadline) {
			return fmt.Errorf("%w: of %d passages of %q and %d other documents %d are stored; ingest them again",
				ErrConflict, want, w.documents[0].Document, len(w.documents)-1, have)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// commit makes the new versions the ones that hold, each in one step. What is
// left of others is swept later, when no search needs it any more.
func (w *writing) commit(ctx context.Context) error {
	var records []*api.PointStruct
	for _, d := range w.documents {
		if !d.known && len(d.Passages) == 0 {
			if err := w.ensureAny(ctx); err != nil {
				return err
			}
		}
		r := record{document: d.Document, version: d.version, fingerprint: d.Fingerprint, title: retrieval.TitleOf(d.Passages), committed: time.Now(), passages: len(d.Passages)}
		if d.known {
			r.previous, r.stale = d.before.version, len(d.old) > 0
			if d.before.version == d.version {
				r.previous, r.committed, r.stale = d.before.previous, d.before.committed, d.before.stale
			}
		}
		records = append(records, w.recordPoint(r))
	}
	if err := w.putRecords(ctx, records, nil); err != nil {
		return err
	}
	for _, d := range w.documents {
		w.seen.add(d.Document, d.version, time.Now())
		w.leftovers.add(d.Document, d.version, d.old)
	}
	return nil
}

// putRecords stores records, in as many writes as their size needs; those that
// are there already only if they meet the filter, if there is one.
func (s *Store) putRecords(ctx context.Context, records []*api.PointStruct, replacing *api.Filter) error {
	var failed error
	b := batches{limit: s.options.BatchBytes, send: func(batch []*api.PointStruct) {
		if failed == nil {
			failed = s.put(ctx, batch, true, replacing)
		}
	}}
	for _, r := range records {
		if err := b.add(r); err != nil {
			return err
		}
	}
	b.flush()
	return failed
}

// ensureAny makes the collection for a document without passages, whose vectors
// do not tell their length.
func (s *Store) ensureAny(ctx context.Context) error {
	if s.attached.Load() && s.indexed.Load() {
		return nil
	}
	v, err := s.options.Embedder.EmbedQuery(ctx, "length of a vector")
	if err != nil {
		return fmt.Errorf("embedding, to make the collection: %w", err)
	}
	return s.ensure(ctx, len(v))
}

func (s *Store) deletePoints(ctx context.Context, doing string, conditions []*api.Condition) error {
	_, err := call(ctx, s.server, doing, s.server.client.Points().Delete, &api.DeletePoints{
		CollectionName: s.options.Collection, Wait: api.PtrOf(true), Points: api.NewPointsSelectorFilter(s.mine(conditions, nil))})
	if absent(err) {
		return nil
	}
	return err
}

// Delete removes documents and their passages; unknown ids are ignored.
func (s *Store) Delete(ctx context.Context, documents ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	documents = slices.Compact(slices.Sorted(slices.Values(documents)))
	documents = slices.DeleteFunc(documents, func(d string) bool { return !utf8.ValidString(d) }) // of which none is stored
	for part := range slices.Chunk(documents, maxDocuments) {
		if err := s.delete(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) delete(ctx context.Context, documents []string) error {
	if ok, err := s.attach(ctx); err != nil || !ok {
		return err
	}
	unlock, err := s.locks.lock(ctx, documents)
	if err != nil {
		return err
	}
	defer unlock()
	ids := make([]string, len(documents))
	for i, d := range documents {
		ids[i] = s.recordID(d)
	}
	records, err := s.get(ctx, "reading what is stored of documents", ids, false)
	if err != nil || len(records) == 0 {
		return err
	}
	var gone []*api.PointStruct
	var names []string
	for _, p := range records {
		r := recordOf(p.Payload)
		names = append(names, r.document)
		gone = append(gone, s.recordPoint(record{document: r.document, committed: time.Now()}))
	}
	// In one step each for readers; then the passages, then the records, so that
	// a crash leaves no passage without a record.
	if err := s.putRecords(ctx, gone, nil); err != nil {
		return err
	}
	for _, kind := range []string{kindPassage, kindDocument} {
		if err := s.deletePoints(ctx, "deleting documents", []*api.Condition{is(fieldKind, kind), oneOf(fieldDocument, names...)}); err != nil {
			return err
		}
	}
	return nil
}

// DeleteWhere removes the documents of which a passage's metadata has all these
// values, and gives their ids. An empty filter is refused: it would delete all.
func (s *Store) DeleteWhere(ctx context.Context, filter map[string]string) ([]string, error) {
	if len(filter) == 0 {
		return nil, errors.New("deleting by filter: the filter is empty and would delete all documents of the tenant")
	}
	conditions, ok := equal(filter)
	if !ok {
		return nil, nil
	}
	if ok, err := s.attach(ctx); err != nil || !ok {
		return nil, err
	}
	found := make(map[string]bool)
	conditions = append(conditions, is(fieldKind, kindPassage))
	for p, err := range s.scroll(ctx, "looking for documents to delete", s.mine(conditions, nil), page, api.NewWithPayloadInclude(fieldDocument), nil) {
		if err != nil {
			return nil, err
		}
		found[p.Payload[fieldDocument].GetStringValue()] = true
	}
	var documents []string
	for d := range found {
		documents = append(documents, d)
	}
	slices.Sort(documents)
	return documents, s.Delete(ctx, documents...)
}
