package local

import (
	"errors"
	"fmt"
)

// What can be wrong with an index file. The errors of Open wrap these, name the
// file, and say what to do.
var (
	// ErrCorrupt: the file is an index, but damaged.
	ErrCorrupt = errors.New("the index file is damaged")
	// ErrForeign: the file is something else, or of a later version.
	ErrForeign = errors.New("the file is not an index this version can read")
	// ErrEmbedder: the index was made with another embedder.
	ErrEmbedder = errors.New("the index was made with another embedder")
	// ErrLocked: another process was writing for longer than the wait.
	ErrLocked = errors.New("the index file is locked by another process")
)

func (x *Index) wrongDimension(got, have int) error {
	where := "the index in memory"
	if x.options.Path != "" {
		where = x.options.Path
	}
	return fmt.Errorf("%w: the vectors in %s have %d numbers, those of embedder %q have %d: use the embedder that the index was made with, or build a new index",
		ErrEmbedder, where, have, x.options.Identity, got)
}
