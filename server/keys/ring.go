package keys

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// Ring knows the keys of a file, and reads it again when it has changed. It is safe
// for concurrent use.
type Ring struct {
	file File
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	seen    os.FileInfo
	keys    []Key
	problem error // why there are none
}

// Open reads a file of keys. log is told when it cannot be read later; nil:
// slog.Default().
func Open(path string, log *slog.Logger) (*Ring, error) {
	if log == nil {
		log = slog.Default()
	}
	r := &Ring{file: File{path}, log: log, now: time.Now}
	r.look()
	return r, r.problem
}

// look reads the file if it is another than it was. It is called with mu held, or
// before anybody else has the ring.
func (r *Ring) look() {
	info, err := os.Stat(r.file.Path)
	if err == nil && r.problem == nil && r.seen != nil && os.SameFile(info, r.seen) && info.ModTime().Equal(r.seen.ModTime()) && info.Size() == r.seen.Size() {
		return
	}
	keys, err := r.file.List()
	if err != nil && (r.problem == nil || r.problem.Error() != err.Error()) && r.seen != nil {
		r.log.Error("the keys cannot be read; nobody is let in", "error", err)
	}
	r.seen, r.keys, r.problem = info, keys, err
}

// Usable is the number of keys that are taken now.
func (r *Ring) Usable() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, k := range r.keys {
		if k.Valid(r.now()) == nil {
			n++
		}
	}
	return n
}

// Check gives the key that a text is, if it is taken now: otherwise ErrUnknown,
// ErrRevoked, ErrExpired, or why the file cannot be read.
func (r *Ring) Check(text string) (Key, error) {
	r.mu.Lock()
	now := r.now()
	r.look() // which costs one look at the file's date
	keys, problem := r.keys, r.problem
	r.mu.Unlock()
	if problem != nil {
		return Key{}, fmt.Errorf("no key can be checked: %w", problem)
	}
	if !strings.HasPrefix(text, Prefix) {
		return Key{}, ErrUnknown
	}
	k, err := find(keys, text)
	if err == nil {
		err = k.Valid(now)
	}
	if err != nil {
		return Key{}, err
	}
	return k, nil
}
