package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
	"github.com/askback/askback/retrieval/qdrant"
)

// ingest runs the program and gives its report.
func ingest(t *testing.T, args ...string) ingestReport {
	t.Helper()
	out, err := exec.Command("askback", append([]string{"ingest", "--json"}, args...)...).Output()
	if err != nil {
		t.Fatalf("ingest %v: %v", args, err)
	}
	var r ingestReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("ingest %v: %v in %s", args, err, out)
	}
	return r
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// opened is a store with what a test looks at.
type opened interface {
	knowledge
	count(ctx context.Context) (int, error)
}

type openedIndex struct{ *local.Index }

func (o openedIndex) count(context.Context) (int, error) { return o.Len(), nil }

type openedQdrant struct{ *qdrant.Store }

func (o openedQdrant) count(ctx context.Context) (int, error) { return o.Len(ctx) }

func openIndexFile(t *testing.T, path string) opened {
	t.Helper()
	model := must(minilm.New())(t)
	return openedIndex{must(local.Open(t.Context(), local.Options{Path: path, Embedder: model, Identity: model.Identity()}))(t)}
}

func openCollection(t *testing.T, addr, collection string) opened {
	t.Helper()
	model := must(minilm.New())(t)
	return openedQdrant{must(qdrant.Open(t.Context(), qdrant.Options{Addr: addr, Collection: collection, Embedder: model, Identity: model.Identity()}))(t)}
}

// must(f())(t) is f's value, or ends the test.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// contents gives the fingerprints of the documents of a store, which it closes,
// and its passages by id.
func contents(t *testing.T, s opened) (map[string]string, map[string]retrieval.Passage) {
	t.Helper()
	defer s.Close()
	documents := must(s.Documents(t.Context()))(t)
	passages := make(map[string]retrieval.Passage)
	n := must(s.count(t.Context()))(t)
	if n > 0 {
		for _, p := range must(s.Retrieve(t.Context(), retrieval.Query{Texts: []string{"station"}, Limit: n}))(t) {
			p.Score = 0
			passages[p.ID] = p
		}
	}
	if len(passages) != n {
		t.Fatalf("%d of %d passages found", len(passages), n)
	}
	return documents, passages
}

// TestIngestKilled kills the program (as kill -9 does) while it embeds, once in
// small files and twice in a large one, which is stored in one step. What the
// next run embeds is exactly what was not embedded yet, and the store holds in
// the end what one run makes.
func TestIngestKilled(t *testing.T) {
	t.Run("index", func(t *testing.T) {
		index := filepath.Join(t.TempDir(), "index.db")
		ingestKilled(t, func() opened { return openIndexFile(t, index) }, index+".embedded", "--index", index)
	})
	t.Run("Qdrant", func(t *testing.T) {
		server := qdranttest.Start(t)
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		t.Setenv("QDRANT_ADDR", server.Addr)
		t.Setenv("QDRANT_COLLECTION", "killed")
		hash := hashOf(server.Addr + "\x00killed")
		file := fmt.Sprintf("%s/askback/%x.embedded", cache, hash[:8])
		ingestKilled(t, func() opened { return openCollection(t, server.Addr, "killed") }, file)
	})
}

// ingestKilled runs the test on the store that flags and environment choose.
// embedded is the file that keeps what is not stored yet.
func ingestKilled(t *testing.T, open func() opened, embedded string, flags ...string) {
	dir := t.TempDir()
	docs := filepath.Join(dir, "docs")
	for i := range 80 {
		writeFile(t, fmt.Sprintf("%s/a%02d.md", docs, i), fmt.Sprintf("# Station %d\n\nStation %d opens at %d in the morning.\n", i, i, i%12))
	}
	var large strings.Builder
	for i := range 400 {
		fmt.Fprintf(&large, "{\"title\": \"Tariff %d\", \"text\": \"The tariff of zone %d is %d euros at station %d.\"}\n", i, i, i*3, i*7)
	}
	writeFile(t, docs+"/large.jsonl", large.String())
	writeFile(t, docs+"/last.md", "The last station has no tariff.\n")

	addr := os.Getenv("QDRANT_ADDR")
	t.Setenv("QDRANT_ADDR", "")
	whole := ingest(t, docs, "--index", dir+"/whole.db")
	t.Setenv("QDRANT_ADDR", addr)
	if whole.Passages != 481 || whole.Embedded != 481 || len(whole.Skipped) != 0 {
		t.Fatalf("a run in one go: %+v", whole)
	}
	wantDocuments, wantPassages := contents(t, openIndexFile(t, dir+"/whole.db"))

	args := append([]string{docs}, flags...)
	const record = 400 * 4 // at least, in bytes
	for _, until := range []int64{1, 64 * record, 192 * record} {
		kill(t, until, embedded, append([]string{"ingest"}, args...)...)
	}
	_, stored := contents(t, open())
	kept := must(openVectorFile(embedded, must(minilm.New())(t).Identity()))(t)
	missing := 0
	for id, p := range wantPassages {
		if _, ok := stored[id]; !ok && kept.get(retrieval.EmbeddingText(p)) == nil {
			missing++
		}
	}
	if err := kept.f.Close(); err != nil {
		t.Fatal(err)
	}
	if missing == 0 || missing > 481-128 {
		t.Fatalf("%d passages were left to embed; the kills came too late or too early", missing)
	}
	if last := ingest(t, args...); last.Embedded != missing {
		t.Errorf("after the kills %d passages were embedded, %d were missing", last.Embedded, missing)
	}
	documents, passages := contents(t, open())
	if !maps.Equal(documents, wantDocuments) {
		t.Errorf("documents\n%v\nwant\n%v", documents, wantDocuments)
	}
	equal := func(a, b retrieval.Passage) bool {
		return a.Text == b.Text && a.Title == b.Title && a.Source == b.Source && a.Document == b.Document && maps.Equal(a.Metadata, b.Metadata)
	}
	if !maps.EqualFunc(passages, wantPassages, equal) {
		t.Errorf("%d passages, want %d, the same", len(passages), len(wantPassages))
	}
	if _, err := os.Stat(embedded); err == nil {
		t.Error("the file of vectors is left behind")
	}
	if again := ingest(t, args...); again.Embedded != 0 || again.Unchanged != 82 {
		t.Errorf("again: %+v", again)
	}
}

// kill runs the program and kills it once a file is longer than that.
func kill(t *testing.T, until int64, file string, args ...string) {
	t.Helper()
	cmd := exec.Command("askback", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if info, err := os.Stat(file); err == nil && info.Size() > until {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the program ended before it was killed (%v)", err)
	}
}

// TestIngestTextWithoutSpaces wants a long transcript in a script without word
// spaces, and a line of base64, to be cut, embedded and stored whole.
func TestIngestTextWithoutSpaces(t *testing.T) {
	dir := t.TempDir()
	var lines []string
	for i := range 12 {
		line := fmt.Sprintf("访谈者%d：", i)
		for j := range 20 {
			line += fmt.Sprintf("我们在第%d号车站工作了%d年，每天都很忙。", i, j)
		}
		lines = append(lines, line)
	}
	writeFile(t, dir+"/docs/interview.md", strings.Join(lines, "\n\n"))
	var key strings.Builder
	for i := range 500 {
		fmt.Fprintf(&key, "QmFz%04X", i*7919%0xffff)
	}
	writeFile(t, dir+"/docs/key.txt", key.String())
	r := ingest(t, dir+"/docs", "--index", dir+"/index.db")
	if r.Passages < 30 || r.Embedded != r.Passages || len(r.Skipped) > 0 || len(r.Warnings) > 0 {
		t.Fatalf("%+v", r)
	}
	model := must(minilm.New())(t)
	_, passages := contents(t, openIndexFile(t, dir+"/index.db"))
	length := map[string]int{}
	for _, p := range passages {
		if n := model.Count(p.Text); n > 512 {
			t.Errorf("%s has %d tokens", p.Source, n)
		}
		length[p.Document] += len(strings.ReplaceAll(p.Text, "\n", ""))
	}
	want := map[string]int{"interview.md": len(strings.Join(lines, "")), "key.txt": key.Len()}
	for document, n := range want {
		if length[document] < n {
			t.Errorf("%s: %d bytes are stored, want %d", document, length[document], n)
		}
	}
}

// TestIngestBytesThatAreNoUTF8 ingests a file whose name and text are Latin-1,
// and one that was cut within a rune: both stores take them, as valid UTF-8.
func TestIngestBytesThatAreNoUTF8(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/docs/caf\xe9.md", "# Caf\xe9\n\nThe caf\xe9 opens at nine.\n")
	writeFile(t, dir+"/docs/cut.txt", "The desk is open all day, says the st\xe2\x82")
	check := func(t *testing.T, r ingestReport, s opened) {
		t.Helper()
		if len(r.Added) != 2 || len(r.Skipped) != 0 {
			t.Errorf("%+v", r)
		}
		documents, passages := contents(t, s)
		if _, ok := documents["café.md"]; !ok || len(passages) != 2 {
			t.Errorf("stored are %v", documents)
		}
		for _, p := range passages {
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
		}
	}
	check(t, ingest(t, dir+"/docs", "--index", dir+"/index.db"), openIndexFile(t, dir+"/index.db"))
	server := qdranttest.Start(t)
	t.Setenv("QDRANT_ADDR", server.Addr)
	t.Setenv("QDRANT_COLLECTION", "bytes")
	check(t, ingest(t, dir+"/docs"), openCollection(t, server.Addr, "bytes"))
}

func TestVectorFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v")
	open := func(identity string) *vectorFile {
		t.Helper()
		v, err := openVectorFile(path, identity)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := open("model 1")
	if err := v.put([]string{"a", "b"}, [][]float32{{1, 2}, {3, 4}}); err != nil {
		t.Fatal(err)
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int) []byte {
		data := slices.Clone(good)
		data[at] ^= 0x40
		return data
	}
	first := len("askback vectors 1 model 1\n")
	for _, test := range []struct {
		name     string
		data     []byte
		identity string
		want     string // the texts whose vector is there
	}{
		{"whole", good, "model 1", "ab"},
		{"another embedder", good, "model 2", ""},
		{"cut in the last record", good[:len(good)-1], "model 1", "a"},
		{"cut in the first record", good[:first+5], "model 1", ""},
		{"cut in the header", good[:5], "model 1", ""},
		{"empty", nil, "model 1", ""},
		{"a number changed", changed(len(good) - 6), "model 1", "a"},
		{"a length changed", changed(first + 16), "model 1", ""},
		{"more after the end", append(slices.Clone(good), "torn"...), "model 1", "ab"},
	} {
		writeFile(t, path, string(test.data))
		v := open(test.identity)
		got := ""
		for text, want := range map[string][]float32{"a": {1, 2}, "b": {3, 4}} {
			if vector := v.get(text); vector != nil {
				got += text
				if !slices.Equal(vector, want) {
					t.Errorf("%s: %s has %v", test.name, text, vector)
				}
			}
		}
		if got == "ba" { // in no order
			got = "ab"
		}
		if got != test.want {
			t.Errorf("%s: has %q, want %q", test.name, got, test.want)
		}
		// What is added after that is found again.
		if err := v.put([]string{"c"}, [][]float32{{5}}); err != nil {
			t.Fatal(err)
		}
		if err := v.close(); err != nil {
			t.Fatal(err)
		}
		if v = open(test.identity); !slices.Equal(v.get("c"), []float32{5}) {
			t.Errorf("%s: what was added is lost", test.name)
		}
		if err := v.clear(); err != nil {
			t.Fatal(err)
		}
		if err := v.close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: an empty file is left", test.name)
		}
	}
}

func FuzzVectorFile(f *testing.F) {
	f.Add([]byte("askback vectors 1 m\n"))
	f.Add([]byte("askback vectors 1 m\n0123456789abcdef\xff\xff\xff\xff0123"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "v")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := openVectorFile(path, "m")
		if err != nil {
			t.Fatal(err)
		}
		if err := v.put([]string{"a"}, [][]float32{{1}}); err != nil || !slices.Equal(v.get("a"), []float32{1}) {
			t.Errorf("what was added is lost: %v", err)
		}
		_ = v.close()
	})
}

func TestForecast(t *testing.T) {
	f := &forecast{sizes: map[string]int64{"a": 100, "b": 100, "c": 200}, left: 400}
	for _, step := range []struct {
		read     string
		passages int // -1: not changed
		want     int
	}{{"a", -1, 0}, {"b", 10, 30}, {"c", 30, 40}, {"unknown", 5, 45}} {
		f.read(step.read)
		if step.passages >= 0 {
			f.cut(step.passages)
		}
		if got := f.total(0); got != step.want {
			t.Errorf("after %s: %d passages in all, want %d", step.read, got, step.want)
		}
	}
}
