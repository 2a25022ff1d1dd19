// Package keylock holds a set of locks by name, each fair: who waits longest is
// next. Waiting ends with the context.
package keylock

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Set is a set of locks by name. The zero value is ready. A name that nobody
// holds takes no memory.
type Set struct {
	mu    sync.Mutex
	lines map[string][]chan struct{} // the first of each line holds the lock
}

// ErrFull says that as many wait for a lock as may.
var ErrFull = errors.New("too many wait")

// Lock waits for the lock of that name, with at most queue others, and gives
// what unlocks it, which must be called once. If ctx ends first it gives the
// context's error.
func (s *Set) Lock(ctx context.Context, name string, queue int) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	mine := make(chan struct{})
	s.mu.Lock()
	if s.lines == nil {
		s.lines = make(map[string][]chan struct{})
	}
	if len(s.lines[name]) > queue {
		s.mu.Unlock()
		return nil, ErrFull
	}
	s.lines[name] = append(s.lines[name], mine)
	if len(s.lines[name]) == 1 {
		close(mine)
	}
	s.mu.Unlock()

	select {
	case <-mine:
		return func() { s.leave(name, mine) }, nil
	case <-ctx.Done():
		s.leave(name, mine)
		return nil, ctx.Err()
	}
}

// leave takes one place out of the line and, if it was the first, lets the next
// one in.
func (s *Set) leave(name string, mine chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[name]
	i := slices.Index(line, mine)
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(s.lines, name)
		return
	}
	s.lines[name] = line
	if i == 0 {
		close(line[0])
	}
}
