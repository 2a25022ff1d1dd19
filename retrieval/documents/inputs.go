package documents

import (
	"context"
	"io/fs"
	"iter"

	"github.com/askback/askback/retrieval"
)

// chunking changes whenever documents would be read or cut otherwise, so that
// stores are brought up to date.
const chunking = "chunks 1"

// InputOptions say how the files of a folder become the inputs of
// retrieval.Sync. The zero value works.
type InputOptions struct {
	Options
	Chunk retrieval.ChunkOptions
	// Embedder names the embedder, so that with another one all is embedded anew.
	Embedder string
	// Report, if set, is told of each file when it has been dealt with, the
	// unreadable ones included.
	Report func(Result)
}

// Inputs reads the files of fsys and gives them to retrieval.Sync, cut into
// passages. Files that cannot be read are reported and left out, so that what a
// store holds of them goes.
func Inputs(ctx context.Context, fsys fs.FS, o InputOptions) iter.Seq2[retrieval.Input, error] {
	return func(yield func(retrieval.Input, error) bool) {
		for r, err := range Read(ctx, fsys, o.Options) {
			if err != nil {
				yield(retrieval.Input{}, err)
				return
			}
			if o.Report != nil {
				o.Report(r)
			}
			if r.Skipped != "" {
				continue
			}
			input := retrieval.Input{
				Document:    r.Path,
				Fingerprint: r.Document.Fingerprint() + " " + chunking + " " + o.Embedder,
				Passages:    func() ([]retrieval.Passage, error) { return retrieval.Chunk(r.Document, o.Chunk), nil },
			}
			if !yield(input, nil) {
				return
			}
		}
	}
}
