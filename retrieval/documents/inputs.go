package documents

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/askback/askback/retrieval"
)

// InputOptions say how the files of a folder become the inputs of
// retrieval.Sync. The zero value works.
type InputOptions struct {
	Options
	Chunk retrieval.ChunkOptions
	// Report, if set, is told of each file when it has been read, those left out
	// included.
	Report func(Result)
}

// Inputs reads the files of fsys and gives them to retrieval.Sync, cut into
// passages. Files that give no document are reported and left out, so that what a
// store holds of them goes. What the file system refuses to read is an error with
// its path instead, so that what a store holds of it stays.
func Inputs(ctx context.Context, fsys fs.FS, o InputOptions) iter.Seq2[retrieval.Input, error] {
	readable := func(yield func(retrieval.Document, error) bool) {
		for r, err := range Read(ctx, fsys, o.Options) {
			if err == nil && r.Unreadable {
				if !yield(retrieval.Document{ID: r.Path}, errors.New(r.Skipped)) {
					return
				}
				continue
			}
			if err == nil && o.Report != nil {
				o.Report(r)
			}
			if err == nil && r.Skipped != "" {
				continue
			}
			if !yield(r.Document, err) {
				return
			}
		}
	}
	return retrieval.Inputs(readable, o.Chunk)
}
