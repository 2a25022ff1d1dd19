package qdrant

import (
	"context"
	"sync"
	"time"

	api "github.com/qdrant/go-client/qdrant"
)

// pins say of documents which version a search is to see. They are conditions of
// every search, which thus sees nothing of other versions.
type pins map[string]pin

type pin struct {
	version string // "" for none
	since   time.Time
}

func (p pins) not() []*api.Condition {
	var not []*api.Condition
	for document, pin := range p {
		this := []*api.Condition{is(fieldDocument, document)}
		if pin.version == "" {
			not = append(not, this[0])
		} else {
			not = append(not, allOf(this, []*api.Condition{is(fieldVersion, pin.version)}))
		}
	}
	return not
}

// settled is how long ago a version must have become the one that holds for a
// search to rely on all its points having been there. It allows for clocks of
// different machines.
const settled = time.Minute

// maxRounds bounds how often a search is made anew because documents changed
// while it ran.
const maxRounds = 20

// check compares what a search that began at start has found, by document and
// version, with the documents' records, which were read after asked. It reports
// whether the search saw each document as it is, or was when it began: either
// the version that it was pinned to holds still, or was replaced so lately that
// its points are there still, or the only version found has held for long or was
// seen to hold before. If not, it pins what holds now, for the next round.
func (p pins) check(found map[string]map[string]bool, records map[string]record, seen *seen, start, asked time.Time) bool {
	ok := true
	for document, versions := range found {
		now := records[document]
		pinned, isPinned := p[document]
		switch {
		case isPinned && pinned.version == now.version:
			continue
		case isPinned && pinned.version == now.previous && now.version != "" && time.Since(pinned.since) < grace:
			continue
		case !isPinned && len(versions) == 1 && versions[now.version] && (start.Sub(now.committed) > settled || seen.has(document, now.version, start)):
			continue
		}
		seen.add(document, now.version, time.Now())
		p[document] = pin{now.version, asked}
		ok = false
	}
	return ok
}

// seen remembers of some documents a version that held at a time, so that a
// later search that finds it need not be made twice.
type seen struct {
	mu sync.Mutex
	of map[string]pin
}

// maxSeen bounds what is remembered.
const maxSeen = 1 << 16

func (s *seen) add(document, version string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of) >= maxSeen || s.of == nil {
		s.of = make(map[string]pin)
	}
	if s.of[document].version != version {
		s.of[document] = pin{version, at}
	}
}

// has reports whether the version held before start.
func (s *seen) has(document, version string, start time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.of[document]
	return ok && p.version == version && p.since.Before(start)
}

// exists reports whether readers can see a passage that meets the conditions.
func (s *Store) exists(ctx context.Context, doing string, must, not []*api.Condition) (bool, error) {
	found := false
	err := s.visible(ctx, doing, must, not, 16, func(*api.RetrievedPoint) bool {
		found = true
		return false
	})
	return found, err
}

// visible calls f with the passages that meet the conditions and that readers
// can see, until f is false, size points at a time.
func (s *Store) visible(ctx context.Context, doing string, must, not []*api.Condition, size int, f func(*api.RetrievedPoint) bool) error {
	filter := s.mine(append(must, is(fieldKind, kindPassage)), not)
	var points []*api.RetrievedPoint
	look := func() (bool, error) {
		records, err := s.recordsOf(ctx, points)
		if err != nil {
			return false, err
		}
		for _, p := range points {
			r, ok := records[p.Payload[fieldDocument].GetStringValue()]
			if ok && r.version == p.Payload[fieldVersion].GetStringValue() && !f(p) {
				return false, nil
			}
		}
		points = points[:0]
		return true, nil
	}
	for p, err := range s.scroll(ctx, doing, filter, size, api.NewWithPayload(true), nil) {
		if err != nil {
			return err
		}
		if points = append(points, p); len(points) == size {
			if more, err := look(); err != nil || !more {
				return err
			}
		}
	}
	_, err := look()
	return err
}

// recordsOf reads the records of the documents that points are of.
func (s *Store) recordsOf(ctx context.Context, points []*api.RetrievedPoint) (map[string]record, error) {
	seen := make(map[string]bool)
	var ids []string
	for _, p := range points {
		if d := p.Payload[fieldDocument].GetStringValue(); !seen[d] {
			seen[d] = true
			ids = append(ids, s.recordID(d))
		}
	}
	found, err := s.get(ctx, "reading the records of documents", ids, false)
	if err != nil {
		return nil, err
	}
	records := make(map[string]record, len(found))
	for _, p := range found {
		r := recordOf(p.Payload)
		records[r.document] = r
	}
	return records, nil
}
