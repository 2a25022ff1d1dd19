package documents

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/askback/askback/retrieval"
	"golang.org/x/net/html/charset"
)

// loadDOCX reads the headings, paragraphs, lists, tables and footnotes of a
// DOCX file (Office Open XML, ECMA-376 part 1).
func (r *reader) loadDOCX(ctx context.Context, data []byte, d *retrieval.Document) ([]string, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("a damaged archive: %w", err)
	}
	parts := docxParts{archive: archive, left: r.max}
	if kind := otherArchive(archive); kind != "" {
		return nil, fault{ErrFormat, kind}
	}
	x := docx{outline: outline{document: d}, ctx: ctx, counters: map[string]int{}}
	for _, part := range []struct {
		name     string
		required bool
		read     func(*xml.Decoder) error
	}{
		{"word/styles.xml", false, x.readStyles},
		{"word/numbering.xml", false, x.readNumbering},
		{"docProps/core.xml", false, x.readProperties},
		{"word/document.xml", true, x.readBody},
		{"word/footnotes.xml", false, x.readNotes},
		{"word/endnotes.xml", false, x.readNotes},
	} {
		err := parts.read(part.name, part.read)
		if err != nil && (part.required || !errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("a damaged DOCX file: %s: %w", part.name, err)
		}
	}
	d.Title = cmp.Or(d.Title, x.title, x.fileTitle)
	return nil, nil
}

// otherArchive says what an archive is that is not DOCX.
func otherArchive(archive *zip.Reader) string {
	for _, f := range archive.File {
		switch f.Name {
		case "word/document.xml":
			return ""
		case "xl/workbook.xml":
			return "a spreadsheet; save each of its sheets as CSV"
		case "ppt/presentation.xml":
			return "a presentation; save it as PDF"
		case "content.xml":
			return "an OpenDocument file; save it as DOCX or PDF"
		}
	}
	return "an archive; unpack it"
}

// docxParts reads the parts of the archive, up to a size in all.
type docxParts struct {
	archive *zip.Reader
	left    int64 // bytes
}

func (p *docxParts) read(name string, read func(*xml.Decoder) error) error {
	f, err := p.archive.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	limited := &io.LimitedReader{R: f, N: p.left + 1}
	decoder := xml.NewDecoder(limited)
	decoder.CharsetReader = charset.NewReaderLabel
	err = read(decoder)
	if p.left = limited.N - 1; p.left < 0 {
		return fault{ErrTooLarge, "unpacked, it is larger than the limit of file sizes"}
	}
	return err
}

// docx collects the blocks of a document while its XML is read.
type docx struct {
	outline
	ctx       context.Context
	fileTitle string // from the properties

	headingOf map[string]int       // levels of paragraph styles; 0 is the title
	listStyle map[string]listStyle // paragraph styles of list items
	bullets   map[string]bool      // "number id/level" of lists that are not numbered
	counters  map[string]int       // "number id/level" to the number of the last item

	list   []string    // items of the open list
	tables []docxTable // that are open, outermost first
}

type docxTable struct {
	rows [][]string
	cell []string // paragraphs of the open cell
}

// paragraph is what is known of a paragraph at its end.
type paragraph struct {
	text    strings.Builder
	style   string // id
	number  string // id of the list it is in
	level   string // in the list, from 0
	outline string // heading level from 0, set by hand
}

// listStyle is what a paragraph style says of the list that its items are in.
type listStyle struct {
	number string
	level  string
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// elements calls start and end for the elements of a part, and text for text.
func elements(decoder *xml.Decoder, start func(xml.StartElement) error, end func(string), text func(string)) error {
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if err := start(token); err != nil {
				return err
			}
		case xml.EndElement:
			if end != nil {
				end(token.Name.Local)
			}
		case xml.CharData:
			if text != nil {
				text(string(token))
			}
		}
	}
}

// readStyles finds the styles that make a paragraph a heading or list item.
func (x *docx) readStyles(decoder *xml.Decoder) error {
	x.headingOf, x.listStyle = map[string]int{}, map[string]listStyle{}
	id, basedOn := "", map[string]string{}
	err := elements(decoder, func(e xml.StartElement) error {
		value := attr(e, "val")
		switch e.Name.Local {
		case "style":
			id = attr(e, "styleId")
		case "basedOn":
			basedOn[id] = value
		case "name":
			name := strings.ToLower(value)
			if level, ok := strings.CutPrefix(name, "heading "); ok {
				if n, err := strconv.Atoi(level); err == nil {
					x.headingOf[id] = n
				}
			}
			if name == "title" {
				x.headingOf[id] = 0
			}
			if strings.HasPrefix(name, "list") && !strings.HasPrefix(name, "list continue") {
				style := listStyle{level: "0"}
				if n, err := strconv.Atoi(name[len(name)-1:]); err == nil { // "list bullet 2"
					style.level = strconv.Itoa(n - 1)
				}
				x.listStyle[id] = style
			}
		case "numId":
			style := x.listStyle[id]
			style.number = value
			x.listStyle[id] = style
		case "outlineLvl":
			if n, err := strconv.Atoi(value); err == nil && n < 9 {
				if _, ok := x.headingOf[id]; !ok {
					x.headingOf[id] = n + 1
				}
			}
		}
		return nil
	}, nil, nil)
	// A style is also what the style is that it is based on.
	for style := range basedOn {
		for parent, steps := basedOn[style], 0; parent != "" && steps < 10; parent, steps = basedOn[parent], steps+1 {
			if level, ok := x.headingOf[parent]; ok {
				if _, own := x.headingOf[style]; !own {
					x.headingOf[style] = level
				}
				break
			}
		}
	}
	return err
}

// readNumbering finds the lists whose items have bullets instead of numbers.
func (x *docx) readNumbering(decoder *xml.Decoder) error {
	formats := map[string]string{} // "abstract id/level" to format
	abstractOf := map[string]string{}
	abstract, level, number := "", "", ""
	err := elements(decoder, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "abstractNum":
			abstract = attr(e, "abstractNumId")
		case "lvl":
			level = attr(e, "ilvl")
		case "numFmt":
			formats[abstract+"/"+level] = attr(e, "val")
		case "num":
			number = attr(e, "numId")
		case "abstractNumId":
			abstractOf[number] = attr(e, "val")
		}
		return nil
	}, nil, nil)
	x.bullets = map[string]bool{}
	for number, abstract := range abstractOf {
		for level := range 9 {
			l := strconv.Itoa(level)
			if format := formats[abstract+"/"+l]; format == "bullet" || format == "none" || format == "" {
				x.bullets[number+"/"+l] = true
			}
		}
	}
	return err
}

// readProperties reads the title and author that the file's properties give.
func (x *docx) readProperties(decoder *xml.Decoder) error {
	inside := ""
	return elements(decoder, func(e xml.StartElement) error {
		inside = e.Name.Local
		return nil
	}, func(string) { inside = "" }, func(text string) {
		text = strings.TrimSpace(text)
		switch {
		case text == "":
		case inside == "title":
			x.fileTitle = text
		case inside == "creator":
			x.document.Metadata = map[string]string{"author": text}
		}
	})
}

func (x *docx) readBody(decoder *xml.Decoder) error {
	err := x.readText(decoder, x.endParagraph)
	x.endList()
	x.close()
	return err
}

// readNotes adds footnotes as paragraphs at the end.
func (x *docx) readNotes(decoder *xml.Decoder) error {
	x.headings, x.pending = nil, false
	return x.readText(decoder, func(p *paragraph) {
		if text := strings.TrimSpace(p.text.String()); text != "" {
			x.add(retrieval.Block{Text: text, Place: "note"})
		}
	})
}

// readText reads paragraphs and tables.
func (x *docx) readText(decoder *xml.Decoder, end func(*paragraph)) error {
	var open []*paragraph // paragraphs stand in each other where one holds a text box
	last := func() *paragraph {
		if len(open) == 0 {
			return &paragraph{}
		}
		return open[len(open)-1]
	}
	skip, inText := 0, false // elements that are not read stand around this one
	skipped := func(name string) bool {
		switch name {
		case "del", "moveFrom", "Fallback", "instrText", "rPrChange", "pPrChange", "tabs":
			return true
		}
		return false
	}
	return elements(decoder, func(e xml.StartElement) error {
		if skipped(e.Name.Local) {
			skip++
		}
		if skip > 0 {
			return nil
		}
		switch value := attr(e, "val"); e.Name.Local {
		case "p":
			if len(open) > 100 {
				return errors.New("paragraphs nested too deeply")
			}
			open = append(open, &paragraph{})
			return x.ctx.Err()
		case "pStyle":
			last().style = value
		case "numId":
			last().number = value
		case "ilvl":
			last().level = value
		case "outlineLvl":
			last().outline = value
		case "t":
			inText = true
		case "tab":
			last().text.WriteByte('\t')
		case "br", "cr":
			last().text.WriteByte('\n')
		case "noBreakHyphen":
			last().text.WriteByte('-')
		case "tbl":
			if len(x.tables) > 100 {
				return errors.New("tables nested too deeply")
			}
			x.endList()
			x.tables = append(x.tables, docxTable{})
		case "tr":
			if t := x.table(); t != nil {
				t.rows = append(t.rows, nil)
			}
		}
		return nil
	}, func(name string) {
		if skipped(name) && skip > 0 {
			skip--
			return
		}
		if skip > 0 {
			return
		}
		switch name {
		case "t":
			inText = false
		case "p":
			if n := len(open); n > 0 {
				p := open[n-1]
				open = open[:n-1]
				end(p)
			}
		case "tc":
			if t := x.table(); t != nil && len(t.rows) > 0 {
				row := &t.rows[len(t.rows)-1]
				*row = append(*row, strings.Join(t.cell, " "))
				t.cell = nil
			}
		case "tbl":
			x.endTable()
		}
	}, func(text string) {
		if inText && skip == 0 {
			last().text.WriteString(text)
		}
	})
}

func (x *docx) table() *docxTable {
	if len(x.tables) == 0 {
		return nil
	}
	return &x.tables[len(x.tables)-1]
}

// endParagraph makes a paragraph a heading, a list item, a part of a cell or a
// block.
func (x *docx) endParagraph(p *paragraph) {
	text := strings.TrimSpace(retrieval.CleanText(p.text.String()))
	if t := x.table(); t != nil {
		if text != "" {
			t.cell = append(t.cell, text)
		}
		return
	}
	if text == "" {
		return
	}
	level, isHeading := x.headingOf[p.style]
	if n, err := strconv.Atoi(p.outline); err == nil && n < 9 {
		level, isHeading = n+1, true
	}
	if isHeading {
		x.endList()
		if level == 0 {
			x.document.Title = cmp.Or(x.document.Title, strings.Join(strings.Fields(text), " "))
		} else {
			x.open(heading{level: level, text: text})
		}
		return
	}
	style, isItem := x.listStyle[p.style]
	if p.number == "" {
		p.number, p.level = style.number, cmp.Or(p.level, style.level)
	}
	if p.number != "0" && (p.number != "" || isItem) {
		x.list = append(x.list, x.item(p, text))
		return
	}
	x.endList()
	x.add(retrieval.Block{Text: text})
}

// item gives a list item with its mark.
func (x *docx) item(p *paragraph, text string) string {
	level, _ := strconv.Atoi(p.level)
	level = min(max(level, 0), 8)
	key := p.number + "/" + strconv.Itoa(level)
	mark := "- "
	if p.number != "" && !x.bullets[key] {
		x.counters[key]++
		mark = fmt.Sprintf("%d. ", x.counters[key])
		for deeper := level + 1; deeper < 9; deeper++ {
			delete(x.counters, p.number+"/"+strconv.Itoa(deeper))
		}
	}
	indent := strings.Repeat("  ", level)
	return indent + mark + strings.ReplaceAll(text, "\n", "\n"+indent+"  ")
}

func (x *docx) endList() {
	if len(x.list) > 0 {
		x.add(retrieval.Block{Kind: retrieval.List, Text: strings.Join(x.list, "\n")})
		x.list = nil
	}
}

func (x *docx) endTable() {
	n := len(x.tables)
	if n == 0 {
		return
	}
	t := x.tables[n-1]
	x.tables = x.tables[:n-1]
	if outer := x.table(); outer != nil { // a table in a cell is text of the cell
		for _, row := range t.rows {
			outer.cell = append(outer.cell, strings.Join(row, "; "))
		}
		return
	}
	if len(t.rows) == 0 {
		return
	}
	var rows strings.Builder
	for _, row := range t.rows[1:] {
		rows.WriteString(tableRow(row))
	}
	x.add(retrieval.Block{Kind: retrieval.Table, Header: tableHeader(t.rows[0]), Text: rows.String()})
}
