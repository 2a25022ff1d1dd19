package qdrant

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/askback/askback/retrieval"
)

// Store is one tenant's part of a collection. It serves as Store and as
// Retriever, and is safe for concurrent use: readers see a document's old
// passages or its new ones, never some of each.
type Store struct {
	options Options
	server  *server
	owner   bool   // of the connection
	version string // the server's
	locks   locks  // documents being written
	leftovers
	seen seen

	life      sync.Mutex // guards the making of the collection
	attached  atomic.Bool
	indexed   atomic.Bool
	dimension atomic.Int64
	closed    atomic.Bool
}

var (
	_ retrieval.Retriever       = (*Store)(nil)
	_ retrieval.Explainer       = (*Store)(nil)
	_ retrieval.IdentifierStore = (*Store)(nil)
	_ retrieval.BatchStore      = (*Store)(nil)
	_ retrieval.Library         = (*Store)(nil)
)

// Open connects to the server, waiting for it if it is just starting, and
// compares the collection, if there is one, with the options. A missing or empty
// collection is no error: the store is empty, and the first write makes it.
//
// Errors wrap ErrUnavailable, ErrDenied, ErrVersion, ErrMismatch or
// ErrPlaintextKey where they apply.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	server, err := dial(o)
	if err != nil {
		return nil, err
	}
	s := newStore(o, server)
	s.owner = true
	if err := s.start(ctx); err != nil {
		_ = server.conn.Close()
		return nil, err
	}
	return s, nil
}

func newStore(o Options, server *server) *Store {
	s := &Store{options: o, server: server, locks: newLocks()}
	s.leftovers.start(s.sweep)
	return s
}

// ForTenant gives a store for another tenant of the same collection over the
// same connection, which must not be closed before it. Its own Close leaves the
// connection open.
func (s *Store) ForTenant(tenant string) (*Store, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	o := s.options
	o.Tenant = tenant
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t := newStore(o, s.server)
	t.version = s.version
	return t, nil
}

func (s *Store) start(ctx context.Context) error {
	var err error
	if s.version, err = s.server.ready(ctx); err != nil {
		return err
	}
	if err := s.checkVersion(); err != nil {
		return err
	}
	_, err = s.attach(ctx)
	return err
}

// leastReadyWait is how long a server has to answer even if it is not waited for.
const leastReadyWait = 3 * time.Second

// ready waits until the server answers and gives its version. One attempt may not
// take all the time of a call: an address at which nobody answers is known sooner.
func (s *server) ready(ctx context.Context) (version string, err error) {
	asking := *s
	asking.options.CallTimeout = min(s.options.CallTimeout, max(s.options.ReadyWait, leastReadyWait))
	reply, err := callFor(ctx, &asking, s.options.ReadyWait, "waiting for the server", s.client.Qdrant().HealthCheck, &api.HealthCheckRequest{})
	return reply.GetVersion(), err
}

// Drop deletes the collection that options name, with the passages of all its
// tenants, such as one that Open refuses with ErrMismatch. It needs no embedder.
// A collection that is not there is no error.
func Drop(ctx context.Context, o Options) error {
	server, err := connect(o)
	if err != nil {
		return err
	}
	defer server.conn.Close()
	_, err = call(ctx, server, "deleting collection "+server.options.Collection, server.client.Collections().Delete,
		&api.DeleteCollection{CollectionName: server.options.Collection})
	if absent(err) {
		return nil
	}
	return err
}

// WaitReady waits until the server answers, asking again and again with longer
// pauses until Options.ReadyWait is over or ctx ends, and gives the server's
// version. It needs no embedder. It is for those who start a server beside this
// program and whose server's image has no tool to probe it with.
func WaitReady(ctx context.Context, o Options) (version string, err error) {
	server, err := connect(o)
	if err != nil {
		return "", err
	}
	defer server.conn.Close()
	return server.ready(ctx)
}

// connect dials for what needs no embedder.
func connect(o Options) (*server, error) {
	if o.Embedder == nil {
		o.Embedder = noEmbedder{}
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return dial(o)
}

type noEmbedder struct{ retrieval.Embedder }

// Close ends the connection. If documents were replaced a moment ago, it first
// waits until searches that are under way no longer need their old passages,
// at most two seconds, and deletes these. The store cannot be used afterwards.
func (s *Store) Close() error {
	if s.closed.Load() {
		return nil
	}
	s.sweepLast()
	if s.closed.Swap(true) || !s.owner {
		return nil
	}
	if err := s.server.conn.Close(); err != nil {
		return fmt.Errorf("closing the connection to Qdrant at %s: %w", s.options.Addr, err)
	}
	return nil
}

// Len is the number of the tenant's passages, those of documents that are just
// being written included. 0 means that nothing is loaded yet, whether or not the
// collection exists.
func (s *Store) Len(ctx context.Context) (int, error) {
	if ok, err := s.attach(ctx); err != nil || !ok {
		return 0, err
	}
	n, err := s.count(ctx, s.mine([]*api.Condition{is(fieldKind, kindPassage)}, nil))
	return int(n), err
}

// Documents gives the fingerprint of each stored document by its id. One whose
// ingestion was cut off before it was whole has the fingerprint "", so that the
// next Sync stores it anew, or deletes what there is of it.
func (s *Store) Documents(ctx context.Context) (map[string]string, error) {
	documents := make(map[string]string)
	err := s.records(ctx, func(r record) { documents[r.document] = r.fingerprint })
	return documents, err
}

// List tells of each stored document, sorted by id. One whose ingestion was cut
// off before it was whole is left out. Documents stored by a version of this
// program that kept no titles have none.
func (s *Store) List(ctx context.Context) ([]retrieval.DocumentInfo, error) {
	var list []retrieval.DocumentInfo
	err := s.records(ctx, func(r record) {
		if r.version != "" {
			list = append(list, retrieval.DocumentInfo{ID: r.document, Title: r.title, Passages: r.passages, Fingerprint: r.fingerprint})
		}
	})
	slices.SortFunc(list, func(a, b retrieval.DocumentInfo) int { return strings.Compare(a.ID, b.ID) })
	return list, err
}

// Get gives the passages with these ids, in this order; unknown ids are left
// out.
func (s *Store) Get(ctx context.Context, ids ...string) ([]retrieval.Passage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if ok, err := s.attach(ctx); err != nil || !ok {
		return nil, err
	}
	found := make(map[string]retrieval.Passage)
	valid := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !utf8.ValidString(id) }) // of which none is stored
	for part := range slices.Chunk(valid, maxDocuments) {
		err := s.visible(ctx, "reading passages", []*api.Condition{oneOf(fieldID, part...)}, nil, page/4, func(p *api.RetrievedPoint) bool {
			passage := passageOf(p.Payload)
			found[passage.ID] = passage
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	var passages []retrieval.Passage
	for _, id := range ids {
		if p, ok := found[id]; ok {
			p.Metadata = maps.Clone(p.Metadata) // an id may be asked for twice
			passages = append(passages, p)
		}
	}
	return passages, nil
}

// Ping asks the server whether it is there, once and for at most the time that
// ctx gives.
func (s *Store) Ping(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	_, err := callFor(ctx, s.server, -1, "looking whether it is there", s.server.client.Qdrant().HealthCheck, &api.HealthCheckRequest{})
	return err
}

// page is the number of points read at a time.
const page = 1000

// records calls f with each document's record.
func (s *Store) records(ctx context.Context, f func(record)) error {
	if ok, err := s.attach(ctx); err != nil || !ok {
		return err
	}
	for p, err := range s.scroll(ctx, "listing documents", s.mine([]*api.Condition{is(fieldKind, kindDocument)}, nil), page, api.NewWithPayload(true), nil) {
		if err != nil {
			return err
		}
		f(recordOf(p.Payload))
	}
	return nil
}

// scroll gives all points that a filter lets through, size at a time.
func (s *Store) scroll(ctx context.Context, doing string, filter *api.Filter, size int, payload *api.WithPayloadSelector, vectors *api.WithVectorsSelector) iter.Seq2[*api.RetrievedPoint, error] {
	return func(yield func(*api.RetrievedPoint, error) bool) {
		r := &api.ScrollPoints{CollectionName: s.options.Collection, Filter: filter, Limit: api.PtrOf(uint32(size)), WithPayload: payload, WithVectors: vectors}
		for {
			reply, err := call(ctx, s.server, doing, s.server.client.Points().Scroll, r)
			if absent(err) {
				s.attached.Store(false)
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, p := range reply.GetResult() {
				if !yield(p, nil) {
					return
				}
			}
			if r.Offset = reply.GetNextPageOffset(); r.Offset == nil {
				return
			}
		}
	}
}

// get gives the points with these ids that there are, by id.
func (s *Store) get(ctx context.Context, doing string, ids []string, vectors bool) (map[string]*api.RetrievedPoint, error) {
	points := make(map[string]*api.RetrievedPoint, len(ids))
	if len(ids) == 0 {
		return points, nil
	}
	r := &api.GetPoints{CollectionName: s.options.Collection, WithPayload: api.NewWithPayload(true)}
	if vectors {
		r.WithVectors = api.NewWithVectorsInclude(vectorDense)
	}
	for _, id := range ids {
		r.Ids = append(r.Ids, api.NewIDUUID(id))
	}
	reply, err := call(ctx, s.server, doing, s.server.client.Points().Get, r)
	if absent(err) {
		s.attached.Store(false)
		return points, nil
	}
	if err != nil {
		return nil, err
	}
	for _, p := range reply.GetResult() {
		points[p.GetId().GetUuid()] = p
	}
	return points, nil
}

// locks lets one writer at a time change a document.
type locks struct {
	changed *sync.Cond
	held    map[string]bool
}

func newLocks() locks {
	return locks{sync.NewCond(new(sync.Mutex)), make(map[string]bool)}
}

// lock waits until none of the documents is held, holds all, and gives what
// releases them.
func (l locks) lock(ctx context.Context, documents []string) (unlock func(), err error) {
	defer context.AfterFunc(ctx, func() {
		l.changed.L.Lock()
		defer l.changed.L.Unlock()
		l.changed.Broadcast()
	})()
	l.changed.L.Lock()
	defer l.changed.L.Unlock()
	for slices.ContainsFunc(documents, func(d string) bool { return l.held[d] }) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l.changed.Wait()
	}
	for _, d := range documents {
		l.held[d] = true
	}
	return func() {
		l.changed.L.Lock()
		defer l.changed.L.Unlock()
		for _, d := range documents {
			delete(l.held, d)
		}
		l.changed.Broadcast()
	}, nil
}
