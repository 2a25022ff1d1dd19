package documents

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
)

// refusing is a file system that does not let some paths be read.
type refusing struct {
	fstest.MapFS
	paths []string
}

func (r refusing) Open(name string) (fs.File, error) {
	if slices.Contains(r.paths, name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return r.MapFS.Open(name)
}

func (r refusing) ReadDir(name string) ([]fs.DirEntry, error) {
	if slices.Contains(r.paths, name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return r.MapFS.ReadDir(name)
}

func (r refusing) ReadFile(name string) ([]byte, error) {
	if slices.Contains(r.paths, name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return r.MapFS.ReadFile(name)
}

// What cannot be read today was not deleted: a store keeps what it holds of a
// file and of a folder that the file system refuses, and lets go what is gone.
func TestUnreadableIsNotGone(t *testing.T) {
	embedder, err := minilm.New()
	if err != nil {
		t.Fatal(err)
	}
	store, err := local.Open(t.Context(), local.Options{Embedder: embedder})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("# Title\n\n" + text + "\n")} }
	files := fstest.MapFS{
		"a.md": file("The shop opens at nine."), "b.md": file("Parcels weigh ten kilos at most."),
		"share/c.md": file("Leave is thirty days."), "gone.md": file("The old price is five euros."),
	}
	sync := func(fsys fs.FS) retrieval.SyncReport {
		t.Helper()
		report, err := retrieval.Sync(t.Context(), store, Inputs(t.Context(), fsys, InputOptions{}), retrieval.SyncOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if r := sync(files); len(r.Added) != 4 {
		t.Fatalf("first: %+v", r)
	}
	delete(files, "gone.md")
	r := sync(refusing{files, []string{"b.md", "share"}})
	if !slices.Equal(r.Deleted, []string{"gone.md"}) || len(r.Skipped) != 2 || len(r.Unchanged) != 1 {
		t.Errorf("deleted %v, skipped %v, unchanged %v; want gone.md, b.md and share, a.md", r.Deleted, r.Skipped, r.Unchanged)
	}
	if r := sync(files); len(r.Unchanged) != 3 || len(r.Deleted) != 0 {
		t.Errorf("readable again: %+v, want three unchanged", r)
	}
}
