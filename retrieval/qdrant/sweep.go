package qdrant

import (
	"context"
	"slices"
	"sync"
	"time"

	api "github.com/qdrant/go-client/qdrant"
)

// grace is how long the points of a version are kept after another has taken its
// place, for the searches that are under way.
const grace = 2 * time.Second

// leftovers are versions that hold no more and are to be deleted. They are swept
// after their time of grace, and before Close; those of a process that was killed
// by the next one that writes (adopt).
type leftovers struct {
	mu      sync.Mutex
	due     map[string]map[string]time.Time // by document and version
	timer   *time.Timer
	running sync.WaitGroup // sweeps by the timer
	sweep   func(ctx context.Context, now time.Time) error
	ended   bool
	adopted bool
}

func (l *leftovers) start(sweep func(ctx context.Context, now time.Time) error) {
	l.due, l.sweep = make(map[string]map[string]time.Time), sweep
}

// add notes old versions of a document, whose version is now another.
func (l *leftovers) add(document, version string, old map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.due[document], version) // it holds again
	for v := range old {
		if l.due[document] == nil {
			l.due[document] = make(map[string]time.Time)
		}
		if _, ok := l.due[document][v]; !ok {
			l.due[document][v] = time.Now().Add(grace)
		}
	}
	l.schedule()
}

// schedule sets the timer for what there is. It is called with mu held.
func (l *leftovers) schedule() {
	if l.timer != nil || l.ended || len(l.due) == 0 {
		return
	}
	l.running.Add(1)
	l.timer = time.AfterFunc(grace+grace/8, func() {
		defer l.running.Done()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = l.sweep(ctx, time.Now()) // what is left is tried again
		l.mu.Lock()
		defer l.mu.Unlock()
		l.timer = nil
		l.schedule()
	})
}

// sweepLast ends the timer and sweeps all, after waiting until all is due.
func (s *Store) sweepLast() {
	l := &s.leftovers
	l.mu.Lock()
	l.ended = true
	if l.timer != nil && l.timer.Stop() {
		l.running.Done()
	}
	var last time.Time
	for _, versions := range l.due {
		for _, due := range versions {
			if due.After(last) {
				last = due
			}
		}
	}
	l.mu.Unlock()
	l.running.Wait()
	if last.IsZero() {
		return
	}
	time.Sleep(time.Until(last))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = s.sweep(ctx, last) // what is left is marked as such, and swept by the next writer
}

// sweep deletes the versions that are due.
func (s *Store) sweep(ctx context.Context, now time.Time) error {
	l := &s.leftovers
	l.mu.Lock()
	var documents []string
	for document := range l.due {
		documents = append(documents, document)
	}
	l.mu.Unlock()
	slices.Sort(documents)
	for part := range slices.Chunk(documents, 64) {
		if err := s.sweepDocuments(ctx, now, part); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sweepDocuments(ctx context.Context, now time.Time, documents []string) error {
	unlock, err := s.locks.lock(ctx, documents)
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have made one of them the version that holds.
	ids := make([]string, len(documents))
	for i, document := range documents {
		ids[i] = s.recordID(document)
	}
	records, err := s.get(ctx, "reading the records of documents", ids, false)
	if err != nil {
		return err
	}
	l := &s.leftovers
	var old, clean []*api.Condition
	var swept []func()
	l.mu.Lock()
	for i, document := range documents {
		var versions []string
		for version, due := range l.due[document] {
			if !due.After(now) {
				versions = append(versions, version)
				swept = append(swept, func() { delete(l.due[document], version) })
			}
		}
		if len(versions) == 0 {
			continue
		}
		if p := records[ids[i]]; p != nil {
			holds := p.Payload[fieldVersion].GetStringValue()
			if versions = slices.DeleteFunc(versions, func(v string) bool { return v == holds }); len(versions) == 0 {
				continue
			}
		}
		old = append(old, allOf([]*api.Condition{is(fieldDocument, document), oneOf(fieldVersion, versions...)}, nil))
		if len(versions) == len(l.due[document]) {
			clean = append(clean, is(fieldDocument, document))
			swept = append(swept, func() { delete(l.due, document) })
		}
	}
	l.mu.Unlock()
	if len(old) == 0 {
		return nil
	}
	if err := s.deletePoints(ctx, "deleting old passages of documents", []*api.Condition{is(fieldKind, kindPassage), anyOf(old...)}); err != nil {
		return err
	}
	if len(clean) > 0 {
		_, err := call(ctx, s.server, "marking documents as clean", s.server.client.Points().SetPayload, &api.SetPayloadPoints{
			CollectionName: s.options.Collection, Wait: api.PtrOf(true), Payload: map[string]*api.Value{fieldStale: api.NewValueString("")},
			PointsSelector: api.NewPointsSelectorFilter(s.mine([]*api.Condition{is(fieldKind, kindDocument), anyOf(clean...)}, nil))})
		if err != nil && !absent(err) {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, forget := range swept {
		forget()
	}
	return nil
}

// adopt, once, takes over what a process that was killed has left: old versions
// of documents that were replaced a while ago and are still marked as stale.
func (s *Store) adopt(ctx context.Context) error {
	l := &s.leftovers
	l.mu.Lock()
	adopted := l.adopted
	l.mu.Unlock()
	if adopted {
		return nil
	}
	if ok, err := s.attach(ctx); err != nil {
		return err
	} else if ok {
		if err := s.adoptStale(ctx); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adopted = true
	return nil
}

func (s *Store) adoptStale(ctx context.Context) error {
	holding := make(map[string]string)
	for p, err := range s.scroll(ctx, "listing stale documents", s.mine([]*api.Condition{is(fieldKind, kindDocument), is(fieldStale, yes)}, nil), page, api.NewWithPayload(true), nil) {
		if err != nil {
			return err
		}
		if r := recordOf(p.Payload); time.Since(r.committed) > settled {
			holding[r.document] = r.version
		}
	}
	for document, version := range holding {
		old := make(map[string]bool)
		filter := s.mine([]*api.Condition{is(fieldKind, kindPassage), is(fieldDocument, document)}, []*api.Condition{is(fieldVersion, version)})
		for p, err := range s.scroll(ctx, "listing old passages of documents", filter, page, api.NewWithPayloadInclude(fieldVersion), nil) {
			if err != nil {
				return err
			}
			old[p.Payload[fieldVersion].GetStringValue()] = true
		}
		s.leftovers.add(document, version, old)
	}
	return nil
}
