package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	textunicode "golang.org/x/text/encoding/unicode"
)

// render writes a document as the tables of the tests have it.
func render(d retrieval.Document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "title: %s\n", d.Title)
	for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
		fmt.Fprintf(&b, "%s = %s\n", key, d.Metadata[key])
	}
	for _, block := range d.Blocks {
		kind := []string{"paragraph", "list", "table", "code"}[block.Kind]
		fmt.Fprintf(&b, "[%s] %s\n", strings.TrimSpace(kind+" "+block.Place), strings.Join(block.Headings, " > "))
		if block.Header != "" {
			fmt.Fprintf(&b, "%s\n", block.Header)
		}
		fmt.Fprintf(&b, "%s\n", strings.Trim(block.Text, "\n"))
	}
	return b.String()
}

// load reads one file.
func load(t testing.TB, name, content string) (retrieval.Document, []string, error) {
	t.Helper()
	r := reader{fsys: fstest.MapFS{name: {Data: []byte(content)}}, max: DefaultMaxFileSize, pdf: pdfReader{cacheDir: cacheDir}}
	defer r.pdf.close()
	return r.read(t.Context(), name, name)
}

func TestFormats(t *testing.T) {
	tests := []struct{ name, file, content, want string }{
		{"front matter and sections", "leave-policy.md", `---
title: Leave policy
audience: [employees, contractors]
valid: 2026-05-01
contact: {name: Ida, room: 0123}
none: null
---
# Leave policy

Leave is **25 days** a year,
see [the law](https://law.example/leave) and [below](#carry-over).

## Carry-over

Until *March*.

### For contractors
Never\!

## Carry-over
Again &amp; again.
`, `title: Leave policy
audience = employees, contractors
contact.name = Ida
contact.room = 0123
title = Leave policy
valid = 2026-05-01
[paragraph #leave-policy] Leave policy
Leave is 25 days a year, see the law (https://law.example/leave) and below.
[paragraph #carry-over] Leave policy > Carry-over
Until March.
[paragraph #for-contractors] Leave policy > Carry-over > For contractors
Never!
[paragraph #carry-over-1] Leave policy > Carry-over
Again & again.
`},
		{"lists, code, quotes and tables", "kinds.md", "# Kinds\n1. first\n   goes on\n2. second\n   - inner `code \\*`\n   - [x] done\n\n" +
			"> A quote\n> of two lines.\n\n```go\nif x {\n\treturn\n}\n```\n\n| Code | Meaning |\n|:--|--:|\n| `E-1` | full, a\\|b |\n| E-2 |\n\nend<br>here<!-- no --> ![a photo](x.png)\n", `title: Kinds
[list #kinds] Kinds
1. first goes on
2. second
   - inner code \*
   - [x] done
[paragraph #kinds] Kinds
A quote of two lines.
[code #kinds] Kinds
if x {
	return
}
[table #kinds] Kinds
| Code | Meaning |
|-|-|
| E-1 | full, a|b |
| E-2 |  |
[paragraph #kinds] Kinds
end
here a photo
`},
		{"headings that hold the content", "faq.md", "# FAQ\n## Is there parking? Yes.\n## Is there a canteen?\nNo.\n## May I bring a dog? No.\n", `title: FAQ
[paragraph #faq] FAQ
Is there parking? Yes.
[paragraph #is-there-a-canteen] FAQ > Is there a canteen?
No.
[paragraph #faq] FAQ
May I bring a dog? No.
`},
		{"a title of its own", "office-hours.md", "Open from 8.\n\n---\n\nClosed on Sundays.\n", `title: Office hours
[paragraph] ` + `
Open from 8.
[paragraph] ` + `
Closed on Sundays.
`},
		{"lines between rules are no front matter", "a.md", "---\nJust text.\n---\nMore.\n", `title: A
[paragraph #just-text] Just text.
More.
`},
		{"HTML in Markdown", "a.md", "# A\n<details><summary>More</summary>\n<p>Inside &amp; out</p></details>\n\n<!-- hidden -->\n\nText <b>bold</b>.\n", `title: A
[paragraph #a] A
More
[paragraph #a] A
Inside & out
[paragraph #a] A
Text bold.
`},
		{"lines of Chinese", "a.md", "# 年假\n员工每年有\n十天年假。\n", `title: 年假
[paragraph #年假] 年假
员工每年有十天年假。
`},
		{"plain text", "notes.txt", "Call the office before you\ntravel to the plant. It is\nclosed on Mondays.\n\n- bring a pass\n- sign in\r\n\r\nEnd.", `title: Notes
[paragraph] ` + `
Call the office before you
travel to the plant. It is
closed on Mondays.
[paragraph] ` + `
- bring a pass
- sign in
[paragraph] ` + `
End.
`},
		{"wrapped text", "README", "Call the office some days before you travel\nto the plant, which is closed on Mondays and\non holidays. Bring:\n- a pass\n", `title: README
[paragraph] ` + `
Call the office some days before you travel to the plant, which is closed on Mondays and on holidays. Bring:
- a pass
`},
		{"HTML", "page.html", `<!DOCTYPE html><html lang="de"><head><meta charset="utf-8"><title>Seite – Werk</title><style>p{}</style></head><body>
<nav><a href="/">Start</a></nav><script>alert(1)</script>
<h1>Urlaub</h1><p>Es gibt <b>25</b> Tage_mit_Strich.</p><h2>Tabelle</h2><table><tr><th>Land</th><th>Tage</th></tr><tr><td>DE</td><td>25</td></tr></table>
<ul><li>eins<ul><li>innen</li></ul></li><li>zwei</li></ul><pre>a
  b</pre><select><option>x</option></select></body></html>`, `title: Urlaub
language = de
[paragraph #urlaub] Urlaub
Es gibt 25 Tage_mit_Strich.
[table #tabelle] Urlaub > Tabelle
| Land | Tage |
|-|-|
| DE | 25 |
[list #tabelle] Urlaub > Tabelle
- eins
  - innen
- zwei
[code #tabelle] Urlaub > Tabelle
a
  b
`},
		{"HTML by its content", "saved", "<html><head><title>Saved page</title></head><body><p>Hello.</p></body></html>", `title: Saved page
[paragraph] ` + `
Hello.
`},
		{"CSV", "error-codes.csv", "code;meaning;do\r\nERR-1;\"full; or\r\nnearly\";wait\r\nERR-2;lost\r\n\r\nERR-3;;call;now\r\n", `title: Error codes
[paragraph row 2] ERR-1
code: ERR-1
meaning: full; or
nearly
do: wait
[paragraph row 3] ERR-2
code: ERR-2; meaning: lost
[paragraph row 4] ERR-3
code: ERR-3; do: call; now
`},
		{"TSV without names", "a.tsv", "1\tone, or a\n2\ttwo\n", `title: A
[paragraph row 1] ` + `
1; one, or a
[paragraph row 2] ` + `
2; two
`},
		{"JSON records", "staff.json", `[{"name":"Ida","rooms":[1,2],"boss":null,"at":{"site":"Linden","floor":1.50}},{"name":"Bo","ok":true}]`, `title: Staff
[paragraph item 1] Ida
name: Ida; rooms: 1, 2; at.site: Linden; at.floor: 1.50
[paragraph item 2] Bo
name: Bo; ok: true
`},
		{"a JSON object of records", "x.json", `{"title":"Codes","version":3,"codes":[{"code":"E1","text":"full"},{"code":"E2","text":"line\nline"}],"owner":{"name":"Ida"}}`, `title: Codes
[paragraph] ` + `
title: Codes; version: 3
[paragraph codes 1] codes > E1
code: E1; text: full
[paragraph codes 2] codes > E2
code: E2
text: line
line
[paragraph owner] owner
name: Ida
`},
		{"JSON lines", "a.jsonl", "{\"q\":\"Where?\",\"a\":\"Here.\"}\r\n\r\n{\"q\":\"When?\",\"a\":[\"now\",{\"x\":1}]}\r\n", `title: A
[paragraph line 1] Where?
q: Where?; a: Here.
[paragraph line 3] When?
q: When?; a: now; a.2.x: 1
`},
		{"JSON values in a row", "a.json", "{\"a\":1}\n{\"a\":2}\n", `title: A
[paragraph item 1] 1
a: 1
[paragraph item 2] 2
a: 2
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, warnings, err := load(t, tt.file, tt.content)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			if got := render(d); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if d.ID != tt.file || d.Source != tt.file {
				t.Errorf("id %q, source %q, want %q", d.ID, d.Source, tt.file)
			}
		})
	}
}

func TestFilesOfTestdata(t *testing.T) {
	want := map[string]string{
		"encrypted.pdf": "an encrypted PDF; save it without a password",
		"scan.pdf":      "no text found; if it is a scan, it needs text recognition first",
		"handbook.pdf": `title: Boiler handbook
[paragraph page 1] Boiler handbook
This handbook is for people who keep the boilers of the Linden Works running. It tells what each error means and what to do about it, in the order of the numbers on the panel.
[paragraph page 1] Boiler handbook > Errors
Write down the number before you press anything, since the panel forgets it.
Code Meaning What to do
[paragraph page 1] Boiler handbook > Errors
ERR-5171 Water low Open valve 3
[paragraph page 1] Boiler handbook > Errors
ERR-5172 Sensor lost Check the cable
[paragraph page 2] Boiler handbook > Yearly service
The service is due each October. Only the service partner may open the burner; the seal on its lid shows when this was last done and by whom it was done.
[paragraph page 2] Boiler handbook > Yearly service
Keep the report for five years.
`,
		"travel.docx": `title: Travel policy
author = Ida Brandt
[paragraph] ` + `
Valid from May for everyone at the Linden Works.
[paragraph] Booking
Book trains first. Flights need a reason.
[list] Booking
1. Ask your lead
2. Book in the portal
[table] Allowances > By country
| Country | Per day |
|-|-|
| Norway | 60 |
| Chile | 45 |
[paragraph] Receipts
Keep all receipts:
[list] Receipts
- hotel
  - breakfast too
- taxi
[paragraph] ` + `
Who answers questions? The office.
`,
	}
	for r, err := range Read(t.Context(), os.DirFS("testdata/files"), Options{CacheDir: cacheDir}) {
		if err != nil {
			t.Fatal(err)
		}
		got := r.Skipped
		if got == "" {
			got = render(r.Document)
		}
		if got != want[r.Path] {
			t.Errorf("%s: got\n%s\nwant\n%s", r.Path, got, want[r.Path])
		}
		delete(want, r.Path)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

const policy = "---\ntitle: Leave policy\naudience: employees\n---\n# Leave\n\nThe café pays naïve Zoë £5 a day.\n\n## Carry-over\n\n| a | b |\n|---|---|\n| ß | é |\n"

// TestEncodings wants the same passages from a file in any encoding.
func TestEncodings(t *testing.T) {
	encode := func(e encoding.Encoding, text string) string {
		encoded, err := e.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	crlf := strings.ReplaceAll(policy, "\n", "\r\n")
	utf16 := func(order textunicode.Endianness, bom textunicode.BOMPolicy) encoding.Encoding {
		return textunicode.UTF16(order, bom)
	}
	variants := map[string]string{
		"CRLF":                crlf,
		"CR":                  strings.ReplaceAll(policy, "\n", "\r"),
		"BOM":                 "\uFEFF" + policy,
		"BOM and CRLF":        "\uFEFF" + crlf,
		"UTF-16 LE with BOM":  encode(utf16(textunicode.LittleEndian, textunicode.UseBOM), policy),
		"UTF-16 BE with BOM":  encode(utf16(textunicode.BigEndian, textunicode.UseBOM), crlf),
		"UTF-16 LE":           encode(utf16(textunicode.LittleEndian, textunicode.IgnoreBOM), crlf),
		"UTF-16 BE":           encode(utf16(textunicode.BigEndian, textunicode.IgnoreBOM), policy),
		"Latin-1":             encode(charmap.ISO8859_1, policy),
		"Windows-1252":        encode(charmap.Windows1252, crlf),
		"stray NUL bytes":     strings.ReplaceAll(policy, "day", "d\x00ay\x00"),
		"no line end at last": strings.TrimSuffix(policy, "\n"),
	}
	plain, _, err := load(t, "leave-policy.md", policy)
	if err != nil {
		t.Fatal(err)
	}
	if plain.Title != "Leave policy" || plain.Metadata["audience"] != "employees" {
		t.Fatalf("title %q, metadata %v", plain.Title, plain.Metadata)
	}
	want := retrieval.Chunk(plain, retrieval.ChunkOptions{})
	for name, content := range variants {
		t.Run(name, func(t *testing.T) {
			d, warnings, err := load(t, "leave-policy.md", content)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			if got := retrieval.Chunk(d, retrieval.ChunkOptions{}); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if d.Fingerprint() != plain.Fingerprint() {
				t.Error("the fingerprint differs")
			}
		})
	}
}

func TestEncodingsOfOtherText(t *testing.T) {
	encode := func(e encoding.Encoding, text string) string {
		encoded, err := e.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	chinese := strings.Repeat("员工每年有十天年假。\n", 20)
	tests := []struct{ name, file, content, want string }{
		{"Chinese in UTF-16 without a mark", "a.txt", encode(textunicode.UTF16(textunicode.LittleEndian, textunicode.IgnoreBOM), chinese), strings.TrimSpace(chinese)},
		{"broken UTF-8", "a.txt", "年假\xe5 und Übermut\xff!", "年假\uFFFD und Übermut\uFFFD!"},
		{"a page that names its encoding", "a.html", "<html><head><meta charset=\"shift_jis\"></head><body><p>" + encode(japanese.ShiftJIS, "休暇の申請") + "</p>", "休暇の申請"},
		{"a page in Latin-1 that says nothing", "a.html", "<p>caf\xe9</p>", "café"},
		{"a page in UTF-8 that says nothing", "a.html", "<p>café</p>", "café"},
		{"a table in Latin-1", "a.csv", "Stra\xdfe;Nr\nAm M\xfchlbach;3\n", "Straße: Am Mühlbach; Nr: 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, _, err := load(t, tt.file, tt.content)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Blocks) != 1 || d.Blocks[0].Text != tt.want {
				t.Errorf("got %+v, want %q", d.Blocks, tt.want)
			}
		})
	}
}

// TestChineseInterview holds the case of a transcript of which each paragraph
// would count as a single word.
func TestChineseInterview(t *testing.T) {
	var b strings.Builder
	b.WriteString("# 采访记录\n\n")
	for i := range 30 {
		speaker := []string{"记者：", "林经理："}[i%2]
		b.WriteString(speaker + strings.Repeat("我们今天谈谈仓库的安全规定，大家都要认真对待。您先说说去年的情况吧！", 34) + "\n\n")
	}
	d, warnings, err := load(t, "interview.md", b.String())
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %q", err, warnings)
	}
	var all strings.Builder
	for _, p := range retrieval.Chunk(d, retrieval.ChunkOptions{}) {
		if n := retrieval.EstimateTokens(p.Title + "\n" + p.Text); n > retrieval.DefaultMaxTokens {
			t.Errorf("%d tokens in a passage", n)
		}
		if !strings.ContainsRune("。！", []rune(p.Text)[utf8.RuneCountInString(p.Text)-1]) {
			t.Errorf("a passage ends inside a sentence: %q", p.Text)
		}
		all.WriteString(p.Text)
	}
	noLines := strings.NewReplacer("\n", "")
	if got, want := noLines.Replace(all.String()), noLines.Replace(strings.TrimPrefix(b.String(), "# 采访记录")); got != want {
		t.Errorf("text is lost: %d bytes, want %d", len(got), len(want))
	}
}

func TestSkipped(t *testing.T) {
	tests := []struct{ name, file, content, want string }{
		{"empty", "a.md", "", "empty"},
		{"blank", "a.txt", " \n\uFEFF \n", "no text found"},
		{"only front matter", "a.md", "---\ntitle: x\n---\n", "no text found"},
		{"image", "a.txt", "\x89PNG\x0D\x0A\x1A\x0A....", "not a text file: image/png"},
		{"program", "a", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x03\x00\x3e\x00\x01\x00\x00\x00", "not a text file"},
		{"damaged PDF", "a.pdf", "%PDF-1.7\nnothing", "a damaged PDF"},
		{"no PDF", "a.pdf", "hello", "not a PDF, although its name says so"},
		{"old Office file", "a.doc", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "an Office file that is encrypted or of the old kind (.doc, .xls, .ppt); save it as DOCX or PDF without a password"},
		{"damaged archive", "a.docx", "PK\x03\x04....", "a damaged archive: zip: not a valid zip file"},
		{"invalid JSON", "a.json", "{\n\"a\": 1,\n\"b\": x}", "not valid JSON: line 3: invalid character 'x' looking for beginning of value"},
		{"cut JSON", "a.json", "{\"a\": [1,\n2", "not valid JSON: line 2: it ends too early"},
		{"deep JSON", "a.json", strings.Repeat("[", 100000), "not valid JSON: line 1: values nested more than 200 deep"},
		{"empty JSON", "a.json", "[{}, null]", "no text found"},
		{"invalid JSON lines", "a.jsonl", "x\n", "no line is valid JSON: line 1 left out: not valid JSON: invalid character 'x' looking for beginning of value"},
		{"large", "a.txt", strings.Repeat("a", 1<<20+1), "larger than the limit of 1 MB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var results []Result
			fsys := fstest.MapFS{tt.file: {Data: []byte(tt.content)}, "z.txt": {Data: []byte("fine")}}
			for r, err := range Read(t.Context(), fsys, Options{MaxFileSize: 1 << 20, CacheDir: cacheDir}) {
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, r)
			}
			if len(results) != 2 || results[0].Skipped != tt.want || results[1].Skipped != "" || results[1].Document.Title != "Z" {
				t.Errorf("got %+v, want %q and z.txt", results, tt.want)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct{ name, file, content, warning, want string }{
		{"bad line of JSONL", "a.jsonl", "{\"a\":1}\n{\"a\":\n{\"a\":3} x\n{\"a\":4}\n", "line 2 left out: not valid JSON: it ends too early\nline 3 left out: not valid JSON: more than one value", "1 | a: 1 | 4 | a: 4"},
		{"bad front matter", "a.md", "---\ntitle: \"x\n---\n\ntext\n", "front matter kept as text: it is not valid YAML: yaml: line 2: found unexpected end of stream", "title: \"x | text"},
		{"deep quotes", "a.md", "# A\n" + strings.Repeat(">", 10000) + " deep\n", "read as plain text: line 2 nests quotes or lists 10000 deep", "# A\n" + strings.Repeat(">", 10000) + " deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, warnings, err := load(t, tt.file, tt.content)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(warnings, "\n"); got != tt.warning {
				t.Errorf("warnings %q, want %q", got, tt.warning)
			}
			var texts []string
			for _, b := range d.Blocks {
				texts = append(texts, append(b.Headings, b.Text)...)
			}
			if got := strings.Join(texts, " | "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Skip(err) // a file system that takes no such name
		}
	}
	write("docs/b.md", "# B\nb")
	write("docs/sub/a.txt", "a")
	write("docs/caf\xe9.md", "with milk")
	write("docs/.git/config", "no")
	write("docs/.hidden.md", "no")
	write("docs/node_modules/x/readme.md", "no")
	write("outside.txt", "secret")
	for link, target := range map[string]string{"in.md": "b.md", "out.txt": "../outside.txt", "dir": "sub", "gone": "nothing", "loop": "."} {
		if err := os.Symlink(target, filepath.Join(dir, "docs", link)); err != nil {
			t.Skip(err)
		}
	}
	folder, err := OpenFolder(filepath.Join(dir, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var got []string
	for r, err := range Read(t.Context(), folder, Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Done != len(got)+1 || r.Total != 8 {
			t.Errorf("%s: %d of %d", r.Path, r.Done, r.Total)
		}
		if !utf8.ValidString(r.Path + r.Document.ID + r.Document.Source + r.Document.Title) {
			t.Errorf("not valid UTF-8: %+v", r)
		}
		got = append(got, fmt.Sprintf("%s: %s%s", r.Path, r.Document.Title, r.Skipped))
	}
	want := []string{
		"b.md: B",
		"café.md: Café",
		"dir: a link to a folder, not followed",
		"gone: a link to nothing",
		"in.md: B",
		"loop: a link to a folder, not followed",
		"out.txt: a link out of the folder, not followed",
		"sub/a.txt: A",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestUnreadableFiles(t *testing.T) {
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Log("permissions do not bind this user; only the error of the file system is tested")
	}
	fsys := failingFS{fstest.MapFS{"a.txt": {Data: []byte("x")}, "b.txt": {Data: []byte("fine")}}}
	var got []string
	for r, err := range Read(t.Context(), fsys, Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Path+": "+r.Skipped)
	}
	if want := []string{"a.txt: unreadable: permission denied", "b.txt: "}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// failingFS refuses to open a.txt.
type failingFS struct{ fstest.MapFS }

func (f failingFS) Open(name string) (fs.File, error) {
	if name == "a.txt" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.MapFS.Open(name)
}

func TestNoDocuments(t *testing.T) {
	tests := []struct {
		name string
		fsys fstest.MapFS
		want string
	}{
		{"empty", fstest.MapFS{}, "no readable file: found no files; the formats read are " + formatNames},
		{"others", fstest.MapFS{"a.png": {Data: []byte("\x89PNG\x0D\x0A\x1A\x0A")}, "b.PNG": {}, "c": {}},
			"no readable file: found 2 .png, 1 without an extension; the formats read are " + formatNames},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var last error
			for _, err := range Read(t.Context(), tt.fsys, Options{}) {
				last = err
			}
			if !errors.Is(last, ErrNoDocuments) || last.Error() != tt.want {
				t.Errorf("got %v, want %s", last, tt.want)
			}
		})
	}
}

func TestOpenFolderErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(file); err == nil || !strings.Contains(err.Error(), "it is a file") {
		t.Errorf("a file: %v", err)
	}
	if _, err := OpenFolder(file + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

func TestReadIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fsys := fstest.MapFS{"a.txt": {Data: []byte("a")}, "b.txt": {Data: []byte("b")}}
	var last error
	results := 0
	for r, err := range Read(ctx, fsys, Options{}) {
		last = err
		if r.Path != "" {
			results++
			cancel()
		}
	}
	if results != 1 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d results, error %v", results, last)
	}
}
