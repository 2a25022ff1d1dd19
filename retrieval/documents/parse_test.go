package documents

import (
	"errors"
	"strings"
	"testing"
)

// TestParse reads files whose content came over the wire.
func TestParse(t *testing.T) {
	bomb := zipOf(t, "word/document.xml", "<document><body><p><r><t>"+strings.Repeat("bomb ", 1<<19)+"</t></r></p></body></document>")
	for _, test := range []struct {
		file, content string
		text          string // of the first block
		is            error  // of the fault
		why           string
	}{
		{file: "leave.md", content: "\uFEFF# Leave\r\n\r\n30 days.\r\n", text: "30 days."},
		{file: "notes", content: "plain words", text: "plain words"},
		{file: "empty.md", content: "", why: "empty"},
		{file: "blank.md", content: " \n\n\t", why: "no text found"},
		{file: "large.txt", content: strings.Repeat("a", 1<<20+1), is: ErrTooLarge, why: "larger than the limit of 1 MB"},
		{file: "bomb.docx", content: bomb, is: ErrTooLarge, why: "unpacked, it is larger than the limit"},
		{file: "photo.md", content: "\x89PNG\r\n\x1a\n....", is: ErrFormat, why: "not a text file: image/png"},
		{file: "program.txt", content: "\x7fELF\x00\x00\x01\x02\x03", is: ErrFormat, why: "not a text file"},
		{file: "sheet.xlsx", content: zipOf(t, "xl/workbook.xml", "<x/>"), is: ErrFormat, why: "a spreadsheet"},
		{file: "all.zip", content: zipOf(t, "a.md", "# A"), is: ErrFormat, why: "an archive; unpack it"},
		{file: "old.doc", content: "\xD0\xCF\x11\xE0old", is: ErrFormat, why: "an Office file that is encrypted or of the old kind"},
		{file: "a.pdf", content: "no PDF", is: ErrFormat, why: "not a PDF, although its name says so"},
		{file: "broken.json", content: "{", why: "not valid JSON"},
		{file: "broken.docx", content: "PK\x03\x04", why: "a damaged archive"},
	} {
		d, _, err := Parse(t.Context(), test.file, []byte(test.content), Options{MaxFileSize: 1 << 20})
		switch {
		case test.why == "":
			if err != nil || d.ID != test.file || d.Source != test.file || d.Title == "" || len(d.Blocks) != 1 || d.Blocks[0].Text != test.text {
				t.Errorf("%s: %+v, %v", test.file, d, err)
			}
		case err == nil || !strings.Contains(err.Error(), test.why):
			t.Errorf("%s: error %v, want %q", test.file, err, test.why)
		case errors.Is(err, ErrFormat) != (test.is == ErrFormat) || errors.Is(err, ErrTooLarge) != (test.is == ErrTooLarge):
			t.Errorf("%s: error %v is of the wrong kind", test.file, err)
		}
	}
}
