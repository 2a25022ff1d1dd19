package documents

import (
	"archive/zip"
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// FuzzParse sends anything under any name, as an upload does: it is a document or is
// refused in words, soon and with little memory, whatever kind it says it is.
func FuzzParse(f *testing.F) {
	for _, ext := range Extensions() {
		f.Add("a"+ext, []byte("a\n"))
	}
	f.Add("a.docx", []byte("PK\x03\x04"))
	f.Add("a.docx", []byte(zipOf(f, "word/document.xml", "<w><p><t>a</t></p></w>")))
	f.Add("policy.md", []byte(policy))
	f.Add("a.csv", []byte("a;b\n1;\"2\n3\"\n"))
	f.Add("a.json", []byte(`{"title":"a","b":[{"c":1}],"d":{"e":2}}`))
	f.Add("a.html", []byte("<p>a<br>b</p><table><tr><th>d<tr><td>e</table>"))
	f.Add("../a.md", []byte("\xef\xbb\xbf# a"))
	f.Add("a.doc", []byte("\xD0\xCF\x11\xE0"))
	f.Add("a.txt", []byte("\xfe\xff\x00a\xd8\x00"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if bytes.Contains(data, []byte("%PDF-")) {
			t.Skip("FuzzPDF has those")
		}
		if !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\r") {
			t.Skip("the name is the document's id, and the caller's to check")
		}
		const limit = 1 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		d, warnings, err := Parse(t.Context(), name, data, Options{MaxFileSize: limit})
		if spent := time.Since(start); spent > 30*time.Second { // a loaded machine has time for a second's work
			t.Errorf("%q of %d bytes took %v", name, len(data), spent)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 512<<20 {
			t.Errorf("%q of %d bytes took %d MB", name, len(data), used>>20)
		}
		for _, w := range warnings {
			if !utf8.ValidString(w) || w == "" {
				t.Errorf("warning %q", w)
			}
		}
		if err != nil {
			if err.Error() == "" || !utf8.ValidString(err.Error()) {
				t.Errorf("error %q", err)
			}
			return
		}
		checkLoaded(t, d)
		if len(retrieval.Chunk(d, retrieval.ChunkOptions{})) == 0 {
			t.Errorf("%q holds no passage and is no error: %+v", name, d)
		}
	})
}

// FuzzArchive reads anything as the archive that a DOCX file is.
func FuzzArchive(f *testing.F) {
	const text = `<w:document><w:body><w:p><w:pPr><w:pStyle w:val="1"/><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p></w:body></w:document>`
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range map[string]string{
		"word/document.xml":  text,
		"word/styles.xml":    `<w:styles><w:style w:styleId="1"><w:name w:val="heading 1"/><w:basedOn w:val="1"/></w:style></w:styles>`,
		"word/numbering.xml": `<w:numbering><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>`,
		"word/footnotes.xml": `<w:footnotes><w:footnote w:id="1"><w:p><w:r><w:t>n</w:t></w:r></w:p></w:footnote></w:footnotes>`,
		"docProps/core.xml":  `<cp:coreProperties><dc:title>t</dc:title></cp:coreProperties>`,
	} {
		// Stored, not packed: a fuzzer can change what it sees.
		part, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			f.Fatal(err)
		}
		if _, err := part.Write([]byte(content)); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/2])
	f.Add([]byte(zipOf(f, "word/document.xml", text)))
	f.Add([]byte(zipOf(f, "xl/workbook.xml", "<x/>")))
	f.Add([]byte("PK\x05\x06" + string(make([]byte, 18))))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := reader{max: 1 << 20}
		var d retrieval.Document
		if _, err := r.loadDOCX(t.Context(), data, &d); err == nil {
			clean(&d)
			checkLoaded(t, d)
		}
	})
}
