package documents

import (
	"archive/zip"
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestDOCX reads the XML that word processors write, without its namespaces.
func TestDOCX(t *testing.T) {
	styles := `<styles>
<style styleId="berschrift1"><name val="heading 1"/></style>
<style styleId="Kapitel"><basedOn val="berschrift1"/><name val="Kapitel"/></style>
<style styleId="Aufzhlung"><name val="List Bullet"/></style></styles>`
	numbering := `<numbering>
<abstractNum abstractNumId="7"><lvl ilvl="0"><numFmt val="decimal"/></lvl><lvl ilvl="1"><numFmt val="bullet"/></lvl></abstractNum>
<num numId="3"><abstractNumId val="7"/></num></numbering>`
	p := func(properties, text string) string {
		return "<p><pPr>" + properties + "</pPr><r><t>" + text + "</t></r></p>"
	}
	tests := []struct {
		name  string
		parts map[string]string
		body  string
		want  string
	}{
		{"styles in another language, and one based on another", map[string]string{"word/styles.xml": styles},
			p(`<pStyle val="berschrift1"/>`, "Urlaub") + p("", "25 Tage.") + p(`<pStyle val="Kapitel"/>`, "Reisen") + p(`<pStyle val="Aufzhlung"/>`, "Bahn"),
			"title: Urlaub\n[paragraph] Urlaub\n25 Tage.\n[list] Reisen\n- Bahn\n"},
		{"outline levels set by hand", nil,
			p(`<outlineLvl val="0"/>`, "A") + p(`<outlineLvl val="1"/>`, "B") + p(`<outlineLvl val="9"/>`, "text"),
			"title: A\n[paragraph] A > B\ntext\n"},
		{"numbers go on after an inner list", map[string]string{"word/numbering.xml": numbering},
			p(`<numPr><ilvl val="0"/><numId val="3"/></numPr>`, "one") + p(`<numPr><ilvl val="1"/><numId val="3"/></numPr>`, "inner") + p(`<numPr><ilvl val="0"/><numId val="3"/></numPr>`, "two"),
			"title: A\n[list] \n1. one\n  - inner\n2. two\n"},
		{"tab stops are no tabs", nil,
			`<p><pPr><tabs><tab pos="720"/></tabs></pPr><r><t>a</t><tab/><t>b</t><br/><t xml:space="preserve"> c</t></r></p>`,
			"title: A\n[paragraph] \na\tb\n c\n"},
		{"changes are taken as accepted", nil,
			`<p><r><t>Pay </t></r><del><r><delText>5</delText><t>5</t></r></del><ins><r><t>7</t></r></ins><moveFrom><r><t>no</t></r></moveFrom><r><instrText>PAGE</instrText></r></p>`,
			"title: A\n[paragraph] \nPay 7\n"},
		{"a text box is read once", nil,
			`<p><r><t>around</t></r><AlternateContent><Choice><p><r><t>inside</t></r></p></Choice><Fallback><p><r><t>inside</t></r></p></Fallback></AlternateContent></p>`,
			"title: A\n[paragraph] \ninside\n[paragraph] \naround\n"},
		{"a table in a cell", nil,
			`<tbl><tr><tc>` + p("", "a") + `</tc><tc>` + p("", "b") + p("", "c") + `</tc></tr><tr><tc><tbl><tr><tc>` + p("", "x") + `</tc><tc>` + p("", "y") + `</tc></tr></tbl></tc><tc/></tr></tbl>`,
			"title: A\n[table] \n| a | b c |\n|-|-|\n| x; y |  |\n"},
		{"footnotes", map[string]string{"word/footnotes.xml": "<footnotes><footnote>" + p("", "Since May.") + "</footnote></footnotes>"},
			p("", "Text."), "title: A\n[paragraph] \nText.\n[paragraph note] \nSince May.\n"},
		{"properties", map[string]string{"docProps/core.xml": "<core><title>Plan</title><creator>Ida</creator></core>"},
			p("", "Text."), "title: Plan\nauthor = Ida\n[paragraph] \nText.\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			w := zip.NewWriter(&b)
			parts := map[string]string{"word/document.xml": "<document><body>" + tt.body + "</body></document>"}
			for name, content := range tt.parts {
				parts[name] = content
			}
			for name, content := range parts {
				f, err := w.Create(name)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.Write([]byte(content)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			d, warnings, err := load(t, "a.docx", b.String())
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			if got := render(d); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestDOCXThatIsDamaged(t *testing.T) {
	tests := []struct{ name, file, content, want string }{
		{"another archive", "a.zip", zipOf(t, "readme.txt", "hello"), "an archive; unpack it"},
		{"spreadsheet", "a.xlsx", zipOf(t, "xl/workbook.xml", "<workbook/>"), "a spreadsheet; save each of its sheets as CSV"},
		{"broken XML", "a.docx", zipOf(t, "word/document.xml", "<p><t>a</t"), "a damaged DOCX file: word/document.xml: "},
		{"deep tables", "a.docx", zipOf(t, "word/document.xml", strings.Repeat("<tbl>", 200)), "tables nested too deeply"},
		{"deep paragraphs", "a.docx", zipOf(t, "word/document.xml", strings.Repeat("<p>", 200)), "paragraphs nested too deeply"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := load(t, tt.file, tt.content)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestRecordLabels tells by which field a record goes.
func TestRecordLabels(t *testing.T) {
	tests := []struct {
		fields []field
		want   string
	}{
		{[]field{{"code", "E1"}, {"meaning", "full"}}, "E1"},
		{[]field{{"id", "17"}, {"Name", "Ida"}}, "Ida"},
		{[]field{{"when", "2026-05-01"}, {"what", "moved"}}, "2026-05-01"},
		{[]field{{"", "no name"}}, ""},
		{[]field{{"title", strings.Repeat("long ", 20)}, {"id", "4"}}, "4"},
		{[]field{{"title", "two\nlines"}}, ""},
		{[]field{{"title", "—"}}, ""},
	}
	for _, tt := range tests {
		if got := recordLabel(tt.fields); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.fields, got, tt.want)
		}
		if b := recordBlock([]string{"h"}, tt.fields, ""); !slices.Equal(b.Headings, append([]string{"h"}, strings.Fields(tt.want)...)) {
			t.Errorf("%v: headings %q", tt.fields, b.Headings)
		}
	}
}
