package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/minilm"
)

// ingestCommand brings a store up to date with a folder.
type ingestCommand struct {
	Dir     string `arg:"" help:"Folder to read: Markdown, text, HTML, PDF, CSV, JSON, JSONL, DOCX." type:"path"`
	Index   string `help:"Index file to bring up to date. Without it, the Qdrant collection that QDRANT_ADDR and QDRANT_COLLECTION name." type:"path" placeholder:"FILE"`
	Rebuild bool   `help:"If the index file cannot be used, move it aside and build a new one." env:"-"`
	Keep    bool   `help:"Keep documents in the store that are not in the folder, as of another folder." env:"-" xor:"rest"`
	Replace bool   `help:"Let the folder replace all that the store holds, even if they have no file in common." env:"-" xor:"rest"`
	DryRun  bool   `help:"Only say what would be done; embed and store nothing." env:"-"`
	JSON    bool   `name:"json" help:"Print the report as one JSON object."`
	embeddingFlags
	serverFlags
	waitFlags
}

// Run reads the folder, and prints what was done and what was not.
func (c *ingestCommand) Run(ctx context.Context, io streams) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	folder, err := documents.OpenFolder(c.Dir)
	if err != nil {
		return usageError{err}
	}
	defer folder.Close()
	own, err := minilm.New()
	if err != nil {
		return err
	}
	model, err := c.embeddingFlags.open(ctx, c.serverFlags, own)
	if err != nil {
		return err
	}
	work := &embedding{inner: model}
	target, err := openTarget(ctx, io.err, c, model, work)
	if err != nil {
		return err
	}
	defer target.close()
	report, err := c.sync(ctx, io.err, folder, model, target, work)
	if printErr := c.print(io.out, report); printErr != nil {
		return errors.Join(err, printErr)
	}
	switch {
	case errors.Is(err, documents.ErrNoDocuments):
		target.drop(ctx)
		return usagef("%s: %w", c.Dir, err)
	case err != nil && !c.DryRun && report.stored() > 0:
		return fmt.Errorf("%w\nwhat was stored stays; the same command goes on from there", err)
	}
	return err
}

// ingestReport is what ingest did, or would do.
type ingestReport struct {
	Folder    string       `json:"folder"`
	Store     string       `json:"store"`
	DryRun    bool         `json:"dry_run,omitempty"`
	Added     []string     `json:"added"`
	Changed   []string     `json:"changed"`
	Unchanged int          `json:"unchanged"`
	Deleted   []string     `json:"deleted"`
	Kept      int          `json:"kept,omitempty"` // documents left in the store although the folder has no file in common with it
	Passages  int          `json:"passages"`       // of the documents added and changed
	Embedded  int          `json:"embedded"`       // of these, those that the encoder was asked for
	Skipped   []ingestNote `json:"skipped"`        // files that were not indexed
	Warnings  []ingestNote `json:"warnings"`       // files of which something was not indexed
	Seconds   float64      `json:"seconds"`
	// Encoder and Storing are passages a second: of the encoder alone, and of
	// everything else with the vectors given.
	Encoder float64 `json:"encoder_rate,omitempty"`
	Storing float64 `json:"store_rate,omitempty"`
}

// ingestNote says why a file, or a part of it, was not indexed.
type ingestNote struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

func (r ingestReport) stored() int { return len(r.Added) + len(r.Changed) }

// sync does the work. The report is what was done until an error.
func (c *ingestCommand) sync(ctx context.Context, errOut io.Writer, folder fs.FS, model textEmbedder, target *target, work *embedding) (ingestReport, error) {
	r := ingestReport{Folder: c.Dir, Store: target.name, DryRun: c.DryRun}
	forecast := newForecast(folder)
	bar := progress(errOut, -1, "reading", progressbar.OptionShowIts(), progressbar.OptionSetItsString("passages"))
	defer bar.Finish()
	work.progress = func(done int) {
		bar.Describe("indexing")
		bar.ChangeMax(forecast.total(done))
		_ = bar.Set(done)
	}
	inputs := func(yield func(retrieval.Input, error) bool) {
		report := func(d documents.Result) {
			if d.Skipped != "" {
				r.Skipped = append(r.Skipped, ingestNote{d.Path, d.Skipped})
			}
			for _, w := range d.Warnings {
				r.Warnings = append(r.Warnings, ingestNote{d.Path, w})
			}
			forecast.read(d.Path)
		}
		for input, err := range inputs(ctx, folder, model, report) {
			if passages := input.Passages; passages != nil {
				input.Passages = func() ([]retrieval.Passage, error) {
					ps, err := passages()
					forecast.cut(len(ps))
					return ps, err
				}
			}
			if !yield(input, err) {
				return
			}
		}
	}
	store := &ingestStore{target: target, work: work, dry: c.DryRun, replace: c.Replace}
	start := time.Now()
	done, err := retrieval.Sync(ctx, store, inputs, retrieval.SyncOptions{Keep: c.Keep})
	took := time.Since(start)
	_ = bar.Finish()
	r.Added, r.Changed, r.Unchanged, r.Deleted = done.Added, done.Changed, len(done.Unchanged), done.Deleted
	r.Passages, r.Embedded, r.Kept = done.Passages, work.count, store.kept
	if store.kept > 0 {
		r.Deleted = nil
	}
	for _, s := range done.Skipped {
		r.Skipped = append(r.Skipped, ingestNote{s.Document, s.Err.Error()})
	}
	r.Seconds = took.Seconds()
	if work.count > 0 {
		r.Encoder = float64(work.count) / work.took.Seconds()
	}
	if other := store.took - work.took; !c.DryRun && other > 0 {
		r.Storing = float64(r.Passages) / other.Seconds()
	}
	return r, err
}

// print writes the report, for people or for programs.
func (c *ingestCommand) print(w io.Writer, r ingestReport) error {
	if c.JSON {
		for _, list := range []*[]string{&r.Added, &r.Changed, &r.Deleted} {
			*list = append([]string{}, *list...) // never null
		}
		for _, list := range []*[]ingestNote{&r.Skipped, &r.Warnings} {
			*list = append([]ingestNote{}, *list...)
		}
		return json.NewEncoder(printableJSON{w}).Encode(r)
	}
	var b strings.Builder
	verb := ""
	if r.DryRun {
		verb = "would be "
	}
	fmt.Fprintf(&b, "%s: %s%d new, %d changed, %d unchanged, %d deleted\n", r.Store, verb, len(r.Added), len(r.Changed), r.Unchanged, len(r.Deleted))
	if r.DryRun {
		for _, group := range []struct {
			mark  string
			paths []string
		}{{"new", r.Added}, {"changed", r.Changed}, {"deleted", r.Deleted}} {
			for _, path := range group.paths {
				fmt.Fprintf(&b, "  %-8s %s\n", group.mark, fileName(path))
			}
		}
		fmt.Fprintf(&b, "%s would be stored\n", counted(r.Passages, "passage"))
	} else {
		fmt.Fprintf(&b, "%s stored, %d of them embedded, in %.1f s", counted(r.Passages, "passage"), r.Embedded, r.Seconds)
		if r.Encoder > 0 && r.Storing > 0 {
			fmt.Fprintf(&b, " (encoder %.0f passages/s, store %.0f passages/s)", r.Encoder, r.Storing)
		}
		b.WriteByte('\n')
	}
	if r.Kept > 0 {
		fmt.Fprintf(&b, "%s kept that the folder does not hold: store and folder have nothing in common. --keep adds a folder, --replace lets it replace all.\n", counted(r.Kept, "document"))
	}
	if len(r.Skipped) > 0 {
		fmt.Fprintf(&b, "not indexed, %s:\n", counted(len(r.Skipped), "file"))
		for _, s := range r.Skipped {
			fmt.Fprintf(&b, "  %s\n", ofFile(s.Path, s.Why))
		}
	}
	if len(r.Warnings) > 0 {
		b.WriteString("indexed in part:\n")
		for _, s := range r.Warnings {
			fmt.Fprintf(&b, "  %s\n", ofFile(s.Path, s.Why))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ingestStore is the store as Sync is to see it: a dry run stores nothing, and
// all documents go at once only if that is wanted.
type ingestStore struct {
	target  *target
	work    *embedding
	dry     bool
	replace bool

	held int           // documents that the store held at first
	kept int           // documents that Delete left there
	took time.Duration // in the store, embedding included
}

// Documents gives what the store holds.
func (s *ingestStore) Documents(ctx context.Context) (map[string]string, error) {
	documents, err := s.target.Documents(ctx)
	s.held = len(documents)
	return maps.Clone(documents), err
}

// Replace stores one document.
func (s *ingestStore) Replace(ctx context.Context, document, fingerprint string, passages []retrieval.Passage) error {
	return s.ReplaceAll(ctx, []retrieval.Chunked{{Document: document, Fingerprint: fingerprint, Passages: passages}})
}

// ReplaceAll stores documents, together if the store can.
func (s *ingestStore) ReplaceAll(ctx context.Context, documents []retrieval.Chunked) error {
	if s.dry {
		return nil
	}
	start := time.Now()
	defer func() { s.took += time.Since(start) }()
	if many, ok := s.target.knowledge.(retrieval.BatchStore); ok {
		if err := many.ReplaceAll(ctx, documents); err != nil {
			return err
		}
	} else {
		for _, d := range documents {
			if err := s.target.Replace(ctx, d.Document, d.Fingerprint, d.Passages); err != nil {
				return err
			}
		}
	}
	return s.work.stored()
}

// Delete removes documents, but not all there were.
func (s *ingestStore) Delete(ctx context.Context, documents ...string) error {
	if len(documents) == s.held && !s.replace {
		s.kept = len(documents)
		return nil
	}
	if s.dry {
		return nil
	}
	return s.target.Delete(ctx, documents...)
}

// forecast reckons how many passages there will be to embed, from the size of
// the files that are still to be read.
type forecast struct {
	sizes       map[string]int64 // of the files not read yet
	left        int64            // the sum of them
	current     int64            // of the file read last
	cutBytes    int64            // of the files that were cut
	cutPassages int
}

func newForecast(folder fs.FS) *forecast {
	f := &forecast{sizes: make(map[string]int64)}
	// A file that cannot be looked at counts nothing.
	_ = fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				f.sizes[path] = info.Size()
				f.left += info.Size()
			}
		}
		return nil
	})
	return f
}

// read notes that a file was read.
func (f *forecast) read(path string) {
	f.current = f.sizes[path]
	f.left -= f.current
	delete(f.sizes, path)
}

// cut notes the passages of the file read last, which is to be embedded.
func (f *forecast) cut(passages int) {
	f.cutBytes += f.current
	f.cutPassages += passages
}

// total is the number of passages to embed in all, if the files to come are new
// and have as many for their size.
func (f *forecast) total(done int) int {
	total := f.cutPassages
	if f.cutBytes > 0 {
		total += int(float64(f.cutPassages) / float64(f.cutBytes) * float64(f.left))
	}
	return max(total, done)
}
