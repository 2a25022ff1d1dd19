package documents

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/askback/askback/retrieval"
)

func handbook(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/files/handbook.pdf")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDamagedPDFs wants an error or some text from whatever is damaged, and a
// whole file read as before after each.
func TestDamagedPDFs(t *testing.T) {
	whole := handbook(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := pdfReader{cacheDir: cacheDir}
	defer r.close()
	var want retrieval.Document
	if _, err := r.load(t.Context(), whole, &want); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		data := append([]byte(nil), whole...)
		for range 1 + random.IntN(20) {
			data[random.IntN(len(data))] = byte(random.IntN(256))
		}
		if i%3 == 0 {
			data = data[:random.IntN(len(data))]
		}
		var d retrieval.Document
		if _, err := r.load(t.Context(), data, &d); err == nil {
			checkLoaded(t, d)
		}
	}
	var got retrieval.Document
	if _, err := r.load(t.Context(), whole, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after damaged files: error %v, %+v, want %+v", err, got, want)
	}
}

func TestPDFIsOnlyStartedForPDF(t *testing.T) {
	r := reader{fsys: fstest.MapFS{"a.md": {Data: []byte("a")}, "b.pdf": {Data: handbook(t)}}, max: DefaultMaxFileSize, pdf: pdfReader{cacheDir: cacheDir}}
	defer r.pdf.close()
	if _, _, err := r.read(t.Context(), "a.md", "a.md"); err != nil || r.pdf.pool != nil {
		t.Errorf("error %v, PDFium started: %v", err, r.pdf.pool != nil)
	}
	if _, _, err := r.read(t.Context(), "b.pdf", "b.pdf"); err != nil || r.pdf.pool == nil {
		t.Errorf("error %v, PDFium started: %v", err, r.pdf.pool != nil)
	}
}

func TestPDFIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fsys := fstest.MapFS{"a.pdf": {Data: handbook(t)}, "b.pdf": {Data: handbook(t)}}
	var last error
	for r, err := range Read(ctx, fsys, Options{CacheDir: cacheDir}) {
		last = err
		if r.Path == "a.pdf" {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", last)
	}
}

func TestRunningLines(t *testing.T) {
	tests := []struct{ name, pages, want string }{
		{"title and number", "Guide/one/Page 1|Guide/two/Page 2|Guide/three/Page 3", "Guide/one/Page 1|two|three"},
		{"two lines of a head", "Guide/May/one|Guide/May/two|Guide/May/three", "Guide/May/one|two|three"},
		{"too few pages", "Guide/one|Guide/two", "Guide/one|Guide/two"},
		{"on few pages", "a/1x|Guide/b|Guide/c|Guide/d|e/e|f/f|g/g", "a/1x|Guide/b|Guide/c|Guide/d|e/e|f/f|g/g"},
		{"nothing else on a page", "Guide|Guide|Guide", "Guide|Guide|Guide"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var pages [][]pdfLine
			for page := range strings.SplitSeq(tt.pages, "|") {
				var lines []pdfLine
				for line := range strings.SplitSeq(page, "/") {
					lines = append(lines, pdfLine{text: line})
				}
				pages = append(pages, lines)
			}
			dropRunningLines(pages)
			var got []string
			for _, lines := range pages {
				var texts []string
				for _, line := range lines {
					texts = append(texts, line.text)
				}
				got = append(got, strings.Join(texts, "/"))
			}
			if got := strings.Join(got, "|"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzPDF(f *testing.F) {
	f.Add(handbook(f))
	f.Add([]byte("%PDF-1.7\n"))
	r := pdfReader{cacheDir: cacheDir}
	f.Cleanup(r.close)
	if _, err := r.start(context.Background()); err != nil { // too slow for a fuzzer's first input
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lib, err := r.start(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var d retrieval.Document
		start := time.Now()
		if _, err := readPDF(context.Background(), lib, data, &d); err == nil {
			checkLoaded(t, d)
		} else if strings.Contains(err.Error(), "wasm") {
			_ = r.instance.Close() // load does it after every error, which takes a second
			r.instance = nil
		}
		if spent := time.Since(start); spent > 30*time.Second {
			t.Errorf("%d bytes took %v", len(data), spent)
		}
	})
}
