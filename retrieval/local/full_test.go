package local

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/retrievertest"
)

// A document that finds no room is told as such and leaves the one before; it is stored
// once there is room.
func TestDiskFull(t *testing.T) {
	x, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "x.db"), Embedder: new(retrievertest.Embedder)})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	limit := func(pages string) {
		t.Helper()
		if _, err := x.disk.writer.ExecContext(t.Context(), "PRAGMA max_page_count = "+pages); err != nil {
			t.Fatal(err)
		}
	}
	put := func(fingerprint, text string) error {
		return x.Replace(t.Context(), "a.md", fingerprint, []retrieval.Passage{{ID: fingerprint, Document: "a.md", Text: text}})
	}
	stands := func(want string) {
		t.Helper()
		if d, err := x.Documents(t.Context()); err != nil || d["a.md"] != want {
			t.Errorf("stored are %v, %v; want a.md as %q", d, err, want)
		}
		if p, err := x.Get(t.Context(), want); err != nil || len(p) != 1 {
			t.Errorf("passage %q: %v, %v", want, p, err)
		}
	}
	if err := put("1", "alpha"); err != nil {
		t.Fatal(err)
	}
	limit("1") // as many as there are
	long := strings.Repeat("beta ", 20_000)
	if err := put("2", long); !errors.Is(err, retrieval.ErrFull) || !strings.Contains(err.Error(), "x.db is full") {
		t.Errorf("without room: %v", err)
	}
	stands("1")
	limit("1000000")
	if err := put("2", long); err != nil {
		t.Error(err)
	}
	stands("2")
}
