package local_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/retrievertest"

	"go.uber.org/goleak"
)

// pages makes a document of n passages that all name the revision.
func pages(name string, revision, n int) retrieval.Chunked {
	d := retrieval.Chunked{Document: name, Fingerprint: fmt.Sprint(revision)}
	for i := range n {
		d.Passages = append(d.Passages, retrieval.Passage{
			ID: fmt.Sprintf("%s/%d/%d", name, revision, i), Document: name, Title: "Part " + fmt.Sprint(i), Source: name,
			Text:     fmt.Sprintf("%s in revision %d says ERR-%d.", name, revision, 1000+i),
			Metadata: map[string]string{"revision": fmt.Sprint(revision)},
		})
	}
	return d
}

func put(t *testing.T, x *local.Index, documents ...retrieval.Chunked) {
	t.Helper()
	for _, d := range documents {
		if err := x.Replace(t.Context(), d.Document, d.Fingerprint, d.Passages); err != nil {
			t.Fatal(err)
		}
	}
}

func explain(t *testing.T, x *local.Index, texts ...string) []retrieval.Hit {
	t.Helper()
	hits, err := x.Explain(t.Context(), retrieval.Query{Texts: texts, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := open(t, local.Options{Path: path, Identity: "fake"})
	put(t, x, pages("b.md", 1, 3), pages("a.md", 1, 2), pages("empty.md", 1, 0), pages("gone.md", 1, 2), pages("a.md", 2, 4))
	if err := x.Delete(t.Context(), "gone.md"); err != nil {
		t.Fatal(err)
	}
	queries := []string{"what does a.md say", "ERR-1002", "revision 2"}
	var before [][]retrieval.Hit
	for _, q := range queries {
		before = append(before, explain(t, x, q))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}

	embedder := new(retrievertest.Embedder)
	x = open(t, local.Options{Path: path, Identity: "fake", Embedder: embedder})
	for i, q := range queries {
		if after := explain(t, x, q); !reflect.DeepEqual(before[i], after) {
			t.Errorf("%q\nbefore %+v\n after %+v", q, before[i], after)
		}
	}
	documents, err := x.Documents(t.Context())
	if want := map[string]string{"a.md": "2", "b.md": "1", "empty.md": "1"}; err != nil || !reflect.DeepEqual(documents, want) {
		t.Errorf("Documents: %v, %v", documents, err)
	}
	if texts := embedder.Embedded(); len(texts) > 0 {
		t.Errorf("opening embedded %q", texts)
	}
	got, err := x.Get(t.Context(), "b.md/1/2", "no such id", "a.md/2/0")
	if err != nil || len(got) != 2 || got[0].ID != "b.md/1/2" || got[1].Text != "a.md in revision 2 says ERR-1000." {
		t.Errorf("Get: %+v, %v", got, err)
	}
}

func TestClosed(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "index.db")} {
		x, err := local.Open(t.Context(), local.Options{Path: path, Embedder: new(retrievertest.Embedder)})
		if err != nil {
			t.Fatal(err)
		}
		put(t, x, pages("a.md", 1, 1))
		if err := errors.Join(x.Close(), x.Close()); err != nil {
			t.Fatal(err)
		}
		_, errRetrieve := x.Retrieve(t.Context(), retrieval.Query{Texts: []string{"a"}})
		_, errDocuments := x.Documents(t.Context())
		for _, err := range []error{errRetrieve, errDocuments, x.Delete(t.Context(), "a.md"), x.Replace(t.Context(), "a.md", "2", nil)} {
			if !errors.Is(err, local.ErrClosed) {
				t.Errorf("after Close: %v, want ErrClosed", err)
			}
		}
	}
}

// Two indexes on one file: each sees what the other wrote, and what both write
// at once is all there.
func TestTwoOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	a, b := open(t, local.Options{Path: path}), open(t, local.Options{Path: path})
	put(t, a, pages("a.md", 1, 3))
	if got := explain(t, b, "revision"); len(got) != 3 {
		t.Fatalf("the other index finds %d passages, want 3", len(got))
	}
	put(t, b, pages("a.md", 2, 2))
	if got := explain(t, a, "revision"); len(got) != 2 || got[0].Metadata["revision"] != "2" {
		t.Fatalf("the first index finds %+v, want revision 2", got)
	}
	if err := b.Delete(t.Context(), "a.md"); err != nil {
		t.Fatal(err)
	}
	if got := explain(t, a, "revision"); len(got) != 0 {
		t.Fatalf("the first index finds %+v after the other deleted all", got)
	}
	var wg sync.WaitGroup
	for name, x := range map[string]*local.Index{"from a": a, "from b": b} {
		wg.Go(func() {
			for i := range 20 {
				d := pages(fmt.Sprintf("%s %d", name, i), 1, 3)
				if err := x.Replace(t.Context(), d.Document, d.Fingerprint, d.Passages); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, x := range []*local.Index{a, b} {
		if documents, err := x.Documents(t.Context()); err != nil || len(documents) != 40 || x.Len() != 120 {
			t.Errorf("%d documents, %d passages, %v; want 40, 120", len(documents), x.Len(), err)
		}
	}
	// An id that the other stored meanwhile is not taken from its document.
	d := pages("a.md", 1, 1)
	put(t, a, d)
	d.Document, d.Passages[0].Document = "b.md", "b.md"
	if err := b.Replace(t.Context(), "b.md", "1", d.Passages); !errors.Is(err, retrieval.ErrInvalid) || !strings.Contains(err.Error(), "a.md") {
		t.Errorf("an id of another document: %v, want ErrInvalid that names both", err)
	}
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := open(t, local.Options{Path: path, LockWait: 50 * time.Millisecond})
	put(t, x, pages("a.md", 1, 2))
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	d := pages("a.md", 2, 2)
	err = x.Replace(t.Context(), d.Document, d.Fingerprint, d.Passages)
	if !errors.Is(err, local.ErrLocked) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("Replace while locked: %v, want ErrLocked that names the file and the wait", err)
	}
	if got := explain(t, x, "revision"); len(got) != 2 || got[0].Metadata["revision"] != "1" {
		t.Errorf("while locked a reader finds %+v", got)
	}
	if _, err := other.Exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	put(t, x, d)
	if got := explain(t, x, "revision"); len(got) != 2 || got[0].Metadata["revision"] != "2" {
		t.Errorf("afterwards a reader finds %+v", got)
	}
}

func TestAnotherEmbedder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := open(t, local.Options{Path: path, Identity: "minilm@1"})
	put(t, x, pages("a.md", 1, 2))
	_, err := local.Open(t.Context(), local.Options{Path: path, Identity: "bge@2", Embedder: new(retrievertest.Embedder)})
	if !errors.Is(err, local.ErrEmbedder) || !strings.Contains(err.Error(), "minilm@1") || !strings.Contains(err.Error(), "bge@2") || !strings.Contains(err.Error(), path) {
		t.Errorf("Open with another embedder: %v, want ErrEmbedder that names both and the file", err)
	}
	// Without a name, the length of the vectors tells.
	y := open(t, local.Options{Path: path, Embedder: short{}})
	d := pages("b.md", 1, 1)
	if err := y.Replace(t.Context(), d.Document, d.Fingerprint, d.Passages); !errors.Is(err, local.ErrEmbedder) {
		t.Errorf("Replace with shorter vectors: %v, want ErrEmbedder", err)
	}
	if _, err := y.Retrieve(t.Context(), retrieval.Query{Texts: []string{"x"}}); !errors.Is(err, local.ErrEmbedder) {
		t.Errorf("Retrieve with shorter vectors: %v, want ErrEmbedder", err)
	}
	if got := explain(t, x, "revision"); len(got) != 2 {
		t.Errorf("the index has changed: %+v", got)
	}
}

// short embeds in three dimensions.
type short struct{}

func (short) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 2, 3}
	}
	return out, nil
}
func (short) EmbedQuery(context.Context, string) ([]float32, error) { return []float32{1, 2, 3}, nil }

// A file that cannot be used is refused with an error that says which, is left
// as it is, and can be moved aside.
func TestUnusableFiles(t *testing.T) {
	exec := func(t *testing.T, path string, statements ...string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(f func(b []byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(b), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, path string) // of an index
		want  error
	}{
		{"cut", edit(func(b []byte) []byte { return b[:len(b)/2] }), local.ErrCorrupt},
		{"cut in a page", edit(func(b []byte) []byte { return b[:len(b)-100] }), local.ErrCorrupt},
		{"overwritten inside", edit(func(b []byte) []byte {
			copy(b[4096:], bytes.Repeat([]byte{0xA5}, len(b)-4096))
			return b
		}), local.ErrCorrupt},
		{"overwritten schema", edit(func(b []byte) []byte {
			copy(b[100:], bytes.Repeat([]byte{0xA5}, 2000))
			return b
		}), local.ErrCorrupt},
		{"overwritten start", edit(func(b []byte) []byte {
			copy(b, "garbage garbage garbage")
			return b
		}), local.ErrForeign},
		{"text", edit(func([]byte) []byte { return []byte("# A Markdown file\n") }), local.ErrForeign},
		{"short text", edit(func([]byte) []byte { return []byte("x") }), local.ErrForeign},
		{"changed vector", func(t *testing.T, path string) {
			exec(t, path, "UPDATE passages SET vector = x'00000000' WHERE id = 'a.md/1/1'")
		}, local.ErrCorrupt},
		{"changed metadata", func(t *testing.T, path string) {
			exec(t, path, "UPDATE passages SET metadata = '[' WHERE id = 'a.md/1/1'")
		}, local.ErrCorrupt},
		{"changed text", func(t *testing.T, path string) {
			exec(t, path, "UPDATE passages SET text = CAST(x'ff' AS TEXT) WHERE id = 'a.md/1/1'")
		}, local.ErrCorrupt},
		{"other dimension", func(t *testing.T, path string) {
			exec(t, path, "UPDATE meta SET value = '3' WHERE key = 'dimension'")
		}, local.ErrCorrupt},
		{"broken generation", func(t *testing.T, path string) {
			exec(t, path, "UPDATE meta SET value = 'x' WHERE key = 'generation'")
		}, local.ErrCorrupt},
		{"missing table", func(t *testing.T, path string) { exec(t, path, "DROP TABLE passages") }, local.ErrCorrupt},
		{"later version", func(t *testing.T, path string) { exec(t, path, "PRAGMA user_version = 99") }, local.ErrForeign},
		{"other program", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			exec(t, path, "CREATE TABLE photos (id INTEGER)", "INSERT INTO photos VALUES (1)")
		}, local.ErrForeign},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.db")
			options := local.Options{Path: path, Embedder: new(retrievertest.Embedder)}
			x, err := local.Open(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			put(t, x, pages("a.md", 1, 40))
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			test.spoil(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = local.Open(t.Context(), options)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("Open: %v\nwant %v that names the file", err, test.want)
			}
			t.Log(err)
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed (%v)", err)
			}
			moved, err := local.Rebuild(path)
			if err != nil {
				t.Fatal(err)
			}
			if kept, err := os.ReadFile(moved); err != nil || !bytes.Equal(before, kept) {
				t.Errorf("the file moved to %s has changed (%v)", moved, err)
			}
			put(t, open(t, options), pages("a.md", 1, 1))
		})
	}
	t.Run("folder", func(t *testing.T) {
		path := t.TempDir()
		_, err := local.Open(t.Context(), local.Options{Path: path, Embedder: new(retrievertest.Embedder)})
		if !errors.Is(err, local.ErrForeign) || !strings.Contains(err.Error(), path) {
			t.Errorf("Open of a folder: %v", err)
		}
	})
	t.Run("empty file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "index.db")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		put(t, open(t, local.Options{Path: path}), pages("a.md", 1, 1))
	})
	t.Run("nothing to rebuild", func(t *testing.T) {
		if _, err := local.Rebuild(filepath.Join(t.TempDir(), "no.db")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Rebuild: %v", err)
		}
	})
}

// Writes that are cancelled at any moment are either whole or not there, in
// memory as on disk, and the index works on.
// A file that cannot be made is named, with what to look at.
func TestNoPlaceForTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	if err := os.Symlink(filepath.Join("nowhere", "index.db"), path); err != nil {
		t.Skip(err)
	}
	_, err := local.Open(t.Context(), local.Options{Path: path, Embedder: new(retrievertest.Embedder)})
	if err == nil || !strings.Contains(err.Error(), path+": the file cannot be opened; see that its folder exists") {
		t.Errorf("%v", err)
	}
}

func TestCancelledWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := open(t, local.Options{Path: path})
	failed := 0
	for i := range 150 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*20)*time.Microsecond)
		d := pages(fmt.Sprintf("%d.md", i%3), i, 20)
		err := x.Replace(ctx, d.Document, d.Fingerprint, d.Passages)
		cancel()
		if err != nil {
			failed++
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("write %d: %v", i, err)
			}
		}
	}
	t.Logf("%d of 150 writes were cancelled", failed)
	put(t, x, pages("last.md", 1, 1))
	fresh := open(t, local.Options{Path: path})
	for _, q := range []string{"revision", "ERR-1003"} {
		if got, want := explain(t, x, q), explain(t, fresh, q); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: memory has %d hits, the file %d", q, len(got), len(want))
		}
	}
	documents, err := x.Documents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range explain(t, x, "revision") {
		if h.Document != "last.md" && h.Metadata["revision"] != documents[h.Document] {
			t.Errorf("%s is of revision %s, its document of %s", h.ID, h.Metadata["revision"], documents[h.Document])
		}
	}
}

// writerPath tells a copy of the test program to index into this file until it
// is killed.
const writerPath = "RETRIEVAL_LOCAL_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerPath); path != "" {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

func writeUntilKilled(path string) {
	ctx := context.Background()
	x, err := local.Open(ctx, local.Options{Path: path, Embedder: new(retrievertest.Embedder)})
	for revision := 1; err == nil; revision++ {
		var batch []retrieval.Chunked
		for i := range 3 {
			batch = append(batch, pages(fmt.Sprintf("%d.md", i), revision, 50))
		}
		err = x.ReplaceAll(ctx, batch)
		fmt.Println(revision)
	}
	fmt.Println(err)
	os.Exit(1)
}

// A process that is killed while it indexes leaves each document whole, and
// what it had reported as stored is stored.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	watcher := open(t, local.Options{Path: path})
	for kill := range 4 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerPath+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		stored := ""
		for n := 0; n < 3+kill && lines.Scan(); n++ {
			stored = lines.Text()
		}
		time.Sleep(time.Duration(kill) * 3 * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			stored = lines.Text()
		}
		_ = cmd.Wait() // it was killed

		fresh := open(t, local.Options{Path: path})
		for name, x := range map[string]*local.Index{"watcher": watcher, "fresh": fresh} {
			documents, err := x.Documents(t.Context())
			if err != nil || len(documents) != 3 || x.Len() != 150 {
				t.Fatalf("%s: %v, %d passages, %v; want 3 documents of 50", name, documents, x.Len(), err)
			}
			hits := explain(t, x, "revision")
			seen := make(map[string]int)
			for _, h := range hits {
				seen[h.Metadata["revision"]]++
			}
			if len(seen) != 1 || seen[documents["0.md"]] != 150 {
				t.Errorf("%s: passages by revision: %v, documents %v", name, seen, documents)
			}
			var have, reported int
			fmt.Sscan(documents["0.md"], &have)
			if fmt.Sscan(stored, &reported); reported == 0 || have < reported {
				t.Errorf("%s: revision %d is stored, %q was reported", name, have, stored)
			}
		}
	}
}
