package documents

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// zipOf makes an archive with one file.
func zipOf(t testing.TB, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHostileFiles holds the time for what makes parsers slow, and wants no
// file to lose its text.
func TestHostileFiles(t *testing.T) {
	const size, megabyte = 1 << 17, 1 << 20
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	nest := func(open, inside, end string, n int) string {
		return strings.Repeat(open, n) + inside + strings.Repeat(end, n)
	}
	indented := func(mark string, n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat("  ", i) + mark + "needle\n")
		}
		return b.String()
	}
	columns := strings.Repeat("c,", 99999) + "needle\n"
	tests := []struct{ name, file, content string }{
		{"line", "a.md", "needle " + strings.Repeat("word ", megabyte/5)},
		{"one word", "a.md", "needle " + strings.Repeat("a", megabyte/1)},
		{"Chinese line", "a.md", "needle " + strings.Repeat("采访", megabyte/6)},
		{"quotes", "a.md", strings.Repeat("> ", 10000) + "needle"},
		{"quotes on lines", "a.md", strings.Repeat(strings.Repeat(">", 40)+" needle\n", 5000)},
		{"lists in a line", "a.md", strings.Repeat("- ", 10000) + "needle"},
		{"lists by indentation", "a.md", indented("- ", 1000)},
		{"numbers by indentation", "a.md", indented("1. ", 700)},
		{"brackets", "a.md", "needle " + repeat("[")},
		{"links", "a.md", "needle " + repeat("[a](")},
		{"images", "a.md", "needle " + repeat("![")},
		{"emphasis", "a.md", "needle " + repeat("*a_")},
		{"stars", "a.md", "needle " + repeat("*a **a ")},
		{"code marks", "a.md", "needle " + repeat("`a``")},
		{"angles", "a.md", "needle " + repeat("<a ")},
		{"comments", "a.md", "needle " + repeat("<!--")},
		{"comments on lines", "a.md", "needle\n\n" + repeat("<!-- x\n\n")},
		{"entities", "a.md", "needle " + repeat("&amp")},
		{"escapes", "a.md", "needle " + repeat("\\")},
		{"references", "a.md", "needle\n\n" + repeat("[a]: b\n")},
		{"uses of references", "a.md", "[a]: b\n\nneedle\n\n" + repeat("[a] [b] x\n\n")},
		{"table columns", "a.md", "|needle" + strings.Repeat("|a", 9000) + "|\n" + strings.Repeat("|-", 9001) + "|\n" + strings.Repeat("|x|\n", 1000)},
		{"table rows", "a.md", "|needle|b|\n|-|-|\n" + repeat("|x|y|\n")},
		{"headings", "a.md", "# needle\n" + repeat("# a\n")},
		{"heading", "a.md", "# needle " + repeat("a")},
		{"underlines", "a.md", "needle\n" + repeat("a\n=\n")},
		{"fences", "a.md", "needle\n" + repeat("```\n~~~\n")},
		{"rules", "a.md", "needle\n\n" + repeat("---\n")},
		{"paragraph of lines", "a.md", "needle\n" + repeat("[a_b*c\n")},
		{"front matter", "a.md", "---\na: " + nest("[", "1", "]", 5000) + "\n---\nneedle"},
		{"front matter aliases", "a.md", "---\na: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]\n---\nneedle"},
		{"HTML blocks", "a.md", "needle\n\n" + repeat("<div>x\n\n")},
		{"elements", "a.html", "<p>needle</p>" + repeat("<p>a</p>")},
		{"nested elements", "a.html", nest("<div>", "needle", "</div>", 10000)},
		{"nested quotes", "a.html", nest("<blockquote>", "needle", "</blockquote>", 10000)},
		{"nested lists", "a.html", nest("<ul><li>", "needle", "</li></ul>", 10000)},
		{"nested bold", "a.html", "<html>" + nest("<b>", "needle", "</b>", 10000)},
		{"open bold", "a.html", "<html><p>needle" + repeat("<b><p>")},
		{"nested tables", "a.html", nest("<table><tr><td>", "needle", "</td></tr></table>", 3000)},
		{"open elements", "a.html", "<html>needle" + repeat("<span ")},
		{"attributes", "a.html", "<html>needle<p " + repeat("a=b ") + ">"},
		{"text", "a.html", "<html>needle " + repeat("a *b_")},
		{"columns", "a.csv", columns + columns + columns},
		{"rows", "a.csv", "a,needle\n" + repeat("1,2\n")},
		{"open quote", "a.csv", "a,\"needle\n" + repeat("x,\"\n")},
		{"quotes", "a.csv", "needle," + repeat("\"\"\",")},
		{"long header", "a.csv", repeat("a") + ",needle\n" + strings.Repeat("1,2\n", 10000)},
		{"nested JSON", "a.json", nest("[", `"needle"`, "]", 150)},
		{"nested JSON objects", "a.json", nest(`{"a":`, `"needle"`, "}", 150)},
		{"JSON with long keys", "a.json", nest(`{"`+strings.Repeat("k", 10000)+`":`, "["+strings.Repeat(`{"a":1},`, 10000)+`"needle"]`, "}", 50)},
		{"JSON array", "a.json", `["needle"` + repeat(",1") + "]"},
		{"JSON lines", "a.jsonl", "\"needle\"\n" + repeat("1\n")},
		{"bad JSON lines", "a.jsonl", "\"needle\"\n" + repeat("{\n")},
		{"text lines", "a.txt", "needle\n" + repeat("a\n")},
		{"blank lines", "a.txt", "needle" + repeat("\n \n")},
		{"DOCX paragraphs", "a.docx", zipOf(t, "word/document.xml", "<w><p><t>needle</t></p>"+repeat("<p><t>a</t></p>")+"</w>")},
		{"DOCX cells", "a.docx", zipOf(t, "word/document.xml", "<w><tbl><tr><tc><p><t>needle</t></p></tc>"+repeat("<tc><p><t>a</t></p></tc>")+"</tr></tbl></w>")},
		{"DOCX elements", "a.docx", zipOf(t, "word/document.xml", "<w><p><t>needle</t></p>"+nest("<r>", "", "</r>", 100000)+"</w>")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			d, _, err := load(t, tt.file, tt.content)
			if err != nil {
				t.Fatal(err)
			}
			loaded := time.Since(start)
			passages := retrieval.Chunk(d, retrieval.ChunkOptions{})
			spent := time.Since(start)
			t.Logf("%7d KB  load %v  chunk %v  %d passages", len(tt.content)>>10, loaded.Round(time.Millisecond), (spent - loaded).Round(time.Millisecond), len(passages))
			if spent > 5*time.Second {
				t.Errorf("took %v", spent)
			}
			found := false
			for _, p := range passages {
				found = found || strings.Contains(p.Title+p.Text, "needle")
			}
			if !found {
				t.Errorf("the text is lost in %d passages", len(passages))
			}
		})
	}
}

// TestZipBomb wants an archive that unpacks to more than the limit refused.
func TestZipBomb(t *testing.T) {
	bomb := zipOf(t, "word/document.xml", "<w><p><t>"+strings.Repeat("a", 3<<20)+"</t></p></w>")
	r := reader{max: 1 << 20}
	_, err := r.loadDOCX(t.Context(), []byte(bomb), &retrieval.Document{})
	if want := "a damaged DOCX file: word/document.xml: unpacked, it is larger than the limit of file sizes"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// checkLoaded tests what holds for whatever a loader gives.
func checkLoaded(t *testing.T, d retrieval.Document) {
	t.Helper()
	texts := []string{d.ID, d.Title, d.Source}
	for key, value := range d.Metadata {
		texts = append(texts, key, value)
	}
	for _, b := range d.Blocks {
		texts = append(texts, b.Text, b.Header, b.Place)
		texts = append(texts, b.Headings...)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r") {
			t.Errorf("not clean: %q", text)
		}
	}
	retrieval.Chunk(d, retrieval.ChunkOptions{MaxTokens: 20})
}

func fuzzLoader(f *testing.F, file string, seeds ...string) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		d, warnings, err := load(t, file, content)
		if err == nil {
			checkLoaded(t, d)
		}
		_ = fmt.Sprint(warnings, err)
	})
}

func FuzzMarkdown(f *testing.F) {
	fuzzLoader(f, "a.md", policy, "\uFEFF"+policy, "# a\n\n- b\n  1. c\n\n> d\n\n```\ne\n```\n<details>f</details>\n", "---\na: [b, {c: &d e, f: *d}]\n---\n", "caf\xe9")
}

func FuzzText(f *testing.F) {
	fuzzLoader(f, "a.txt", "a\n\nb\r\nc", "\xff\xfea\x00\n\x00", "a\x00b", "caf\xe9")
}

func FuzzHTML(f *testing.F) {
	fuzzLoader(f, "a.html", "<html><head><meta charset=gbk><title>a</title></head><body><h1>b</h1><ul><li>c</ul><table><tr><th>d<tr><td>e</table>", "<p>a<br>b</p><nav>c</nav>")
}

func FuzzTable(f *testing.F) {
	fuzzLoader(f, "a.csv", "a;b\n1;\"2\n3\"\n", "a,b\n1\n", "\"", "a\tb\n")
}

func FuzzJSON(f *testing.F) {
	fuzzLoader(f, "a.json", `[{"a":1.50,"b":[true,null,{"c":"d"}]}]`, `{"title":"a","b":[{"c":1}],"d":{"e":2}}`, `1 2`, `{"a":`)
}

func FuzzJSONLines(f *testing.F) {
	fuzzLoader(f, "a.jsonl", "{\"a\":1}\n\n[1]\n{\n", "1 2\n")
}

func FuzzDOCX(f *testing.F) {
	for _, seed := range []string{
		`<w:document><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>a</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>`,
		`<p><numId val="1"/><ilvl val="2"/><t>a</t><br/><del><t>no</t></del></p>`, `</tbl></p></tc>`, `<tc></tc><tr/>`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if d, _, err := load(t, "a.docx", zipOf(t, "word/document.xml", content)); err == nil {
			checkLoaded(t, d)
		}
	})
}

func BenchmarkMarkdown(b *testing.B) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "## Part %d\n\n%s\n\n- one item\n- another *item* with a [link](https://a.example)\n\n| code | meaning |\n|---|---|\n| E%d | full |\n\n",
			i, strings.Repeat("Carry-over leave must be used by the **end** of March. ", 12), i)
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		var d retrieval.Document
		if _, err := loadMarkdown(b.Context(), data, &d); err != nil {
			b.Fatal(err)
		}
	}
}
