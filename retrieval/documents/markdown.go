package documents

import (
	"context"
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// loadMarkdown reads Markdown with tables, and with YAML front matter as its
// metadata.
func loadMarkdown(_ context.Context, data []byte, d *retrieval.Document) ([]string, error) {
	source, err := decodeText(data)
	if err != nil {
		return nil, err
	}
	var warnings []string
	metadata, body, err := frontMatter(source)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	d.Metadata = metadata
	d.Title = metadata["title"]
	if warning := readMarkdown(body, d); warning != "" {
		warnings = append(warnings, warning)
	}
	return warnings, nil
}

// readMarkdown adds the blocks of a Markdown text to d, and its title if d has
// none. Text that a Markdown parser would take too long for is read as plain
// text; the warning says so.
func readMarkdown(source string, d *retrieval.Document) (warning string) {
	if err := tooIntricate(source); err != nil {
		d.Blocks = append(d.Blocks, paragraphs(source, "")...)
		return "read as plain text: " + err.Error()
	}
	m := markdown{outline: outline{document: d}, source: []byte(source), anchors: map[string]int{}}
	m.blocks(m.parse(m.source))
	m.close()
	if d.Title == "" {
		d.Title = m.title
	}
	return ""
}

// A Markdown parser takes more than linear time for blocks deep in each other,
// for long paragraphs and for wide tables, so these are limited, far above what
// people write.
const (
	maxMarkdownDepth     = 50
	maxMarkdownParagraph = 32 << 10 // bytes
	maxMarkdownColumns   = 500
)

func tooIntricate(source string) error {
	paragraph, number := 0, 0
	for line := range strings.Lines(source) {
		number++
		if depth := markdownDepth(line); depth > maxMarkdownDepth {
			return fmt.Errorf("line %d nests quotes or lists %d deep", number, depth)
		}
		if columns := strings.Count(line, "|"); columns > maxMarkdownColumns && strings.Trim(line, "|-: \t\n") == "" {
			return fmt.Errorf("line %d begins a table of %d columns", number, columns)
		}
		if strings.TrimSpace(line) == "" {
			paragraph = 0
			continue
		}
		if paragraph += len(line); paragraph > maxMarkdownParagraph && strings.ContainsAny(line, "[]*_`<~") {
			return fmt.Errorf("the paragraph at line %d is very long", number)
		}
	}
	return nil
}

// markdownDepth estimates how many quotes and list items a line stands in, by
// the marks that it begins with and the spaces before them.
func markdownDepth(line string) int {
	marks, spaces := 0, 0
	for i := range len(line) {
		switch c := line[i]; {
		case c == ' ':
			spaces++
		case c == '\t':
			spaces += 4
		case c == '>' || c == '-' || c == '+' || c == '*' || c == '.' || c == ')':
			marks++
		case c < '0' || c > '9':
			if marks == 0 {
				return 0 // indented, but no item
			}
			return max(marks, spaces/2)
		}
	}
	return 0 // a rule, or nothing but numbers
}

// markdown turns the tree of a Markdown text into blocks.
type markdown struct {
	outline
	source  []byte
	anchors map[string]int // times that each was given

	inHTML    bool // source was HTML inside of Markdown
	converted int  // blocks of HTML
}

func (m *markdown) parse(source []byte) ast.Node {
	parser := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()
	return parser.Parse(text.NewReader(source))
}

// blocks adds the blocks that stand in a document or a quote.
func (m *markdown) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			title := m.inline(n)
			m.open(heading{n.Level, title, m.anchor(title)})
		case *ast.Blockquote:
			m.blocks(n)
		case *ast.ThematicBreak:
		case *ast.HTMLBlock:
			m.html(n)
		case *extensionast.Table:
			header, rows := m.table(n)
			m.add(retrieval.Block{Kind: retrieval.Table, Header: header, Text: rows})
		case *ast.List:
			m.add(retrieval.Block{Kind: retrieval.List, Text: m.text(n)})
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			m.add(retrieval.Block{Kind: retrieval.Code, Text: m.text(n)})
		default:
			m.add(retrieval.Block{Text: m.text(n)})
		}
	}
}

// anchor gives the address of a heading in its page, as GitHub forms it.
func (m *markdown) anchor(title string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.In(r, unicode.Letter, unicode.Mark, unicode.Number), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, title)
	m.anchors[slug]++
	if n := m.anchors[slug]; n > 1 {
		slug = fmt.Sprintf("%s-%d", slug, n-1)
	}
	return "#" + slug
}

// maxHTMLBlocks is how many blocks of HTML in one file are read with their
// structure, which costs a part of a millisecond each.
const maxHTMLBlocks = 500

// html reads a block of HTML in Markdown.
func (m *markdown) html(n *ast.HTMLBlock) {
	if m.inHTML {
		m.add(retrieval.Block{Text: string(m.lines(n))})
		return
	}
	source := m.lines(n)
	if m.converted++; m.converted > maxHTMLBlocks {
		m.add(retrieval.Block{Text: htmlText(source)})
		return
	}
	page, err := parseHTML(source)
	if err != nil {
		m.add(retrieval.Block{Text: htmlText(source)})
		return
	}
	outer := m.source
	m.source, m.inHTML = []byte(page.markdown), true
	if err := tooIntricate(page.markdown); err != nil {
		m.add(retrieval.Block{Text: page.markdown})
	} else {
		m.blocks(m.parse(m.source))
	}
	m.source, m.inHTML = outer, false
}

// table gives a table's header and rows in Markdown, one row a line.
func (m *markdown) table(n *extensionast.Table) (header, rows string) {
	var b strings.Builder
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, m.inline(cell))
		}
		if _, ok := row.(*extensionast.TableHeader); ok {
			header = tableHeader(cells)
			continue
		}
		b.WriteString(tableRow(cells))
	}
	return header, b.String()
}

// tableRow writes a row of a table in Markdown, with its line end.
func tableRow(cells []string) string {
	for i, cell := range cells {
		cells[i] = strings.Join(strings.Fields(cell), " ")
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// tableHeader writes the header row and the line under it. It is empty if all
// cells are.
func tableHeader(cells []string) string {
	row := tableRow(cells)
	if strings.Trim(row, "| \n") == "" {
		return ""
	}
	return row + "|" + strings.Repeat("-|", len(cells))
}

// text gives what a block says, as plain text with the marks of lists.
func (m *markdown) text(n ast.Node) string {
	var b strings.Builder
	m.write(&b, n, "")
	return strings.Trim(b.String(), "\n")
}

// write writes a block; indent goes before each line but the first.
func (m *markdown) write(b *strings.Builder, n ast.Node, indent string) {
	switch n := n.(type) {
	case *ast.List:
		number := n.Start
		for item := n.FirstChild(); item != nil; item = item.NextSibling() {
			mark := "- "
			if n.IsOrdered() {
				mark = fmt.Sprintf("%d. ", number)
				number++
			}
			if item != n.FirstChild() {
				b.WriteString(indent)
			}
			b.WriteString(mark)
			m.writeParts(b, item, indent+strings.Repeat(" ", len(mark)))
		}
	case *ast.Blockquote:
		m.writeParts(b, n, indent)
	case *ast.ThematicBreak:
	case *extensionast.Table:
		header, rows := m.table(n)
		writeLines(b, header+"\n"+rows, indent)
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock:
		writeLines(b, string(m.lines(n)), indent)
	default:
		writeLines(b, m.inline(n), indent)
	}
}

// writeParts writes the blocks in a list item or a quote, one below the other.
func (m *markdown) writeParts(b *strings.Builder, parent ast.Node, indent string) {
	if !parent.HasChildren() {
		b.WriteByte('\n')
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() {
			b.WriteString(indent)
		}
		m.write(b, n, indent)
	}
}

func writeLines(b *strings.Builder, text, indent string) {
	for i, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
		if i > 0 && line != "" {
			b.WriteString(indent)
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
}

// lines gives the lines of a block of code or HTML as they stand.
func (m *markdown) lines(n ast.Node) []byte {
	var b []byte
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b = append(b, line.Value(m.source)...)
	}
	if n, ok := n.(*ast.HTMLBlock); ok && n.HasClosure() {
		b = append(b, n.ClosureLine.Value(m.source)...)
	}
	return b
}

// inline gives the text in a paragraph, heading or cell without its markup.
func (m *markdown) inline(n ast.Node) string {
	var b strings.Builder
	m.writeInline(&b, n)
	return strings.TrimSpace(b.String())
}

func (m *markdown) writeInline(b *strings.Builder, parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			value := string(n.Value(m.source))
			if parent.Kind() != ast.KindCodeSpan && !n.IsRaw() {
				value = unescape(value)
			}
			b.WriteString(value)
			switch {
			case n.HardLineBreak():
				b.WriteByte('\n')
			case n.SoftLineBreak():
				last, _ := utf8.DecodeLastRuneInString(value)
				b.WriteString(joint(last, m.firstRune(n.NextSibling())))
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.Link:
			start := b.Len()
			m.writeInline(b, n)
			address := string(n.Destination)
			if outside(address) && b.String()[start:] != address {
				fmt.Fprintf(b, " (%s)", address)
			}
		case *ast.AutoLink:
			b.Write(n.Label(m.source))
		case *ast.RawHTML:
			if tag := string(n.Segments.Value(m.source)); strings.HasPrefix(strings.ToLower(tag), "<br") {
				b.WriteByte('\n')
			}
		case *extensionast.TaskCheckBox:
			if n.IsChecked {
				b.WriteString("[x] ")
			} else {
				b.WriteString("[ ] ")
			}
		default: // emphasis, code, an image with its description
			m.writeInline(b, n)
		}
	}
}

// firstRune gives the rune that a line goes on with, or 0 if it is no text.
func (m *markdown) firstRune(n ast.Node) rune {
	if n, ok := n.(*ast.Text); ok {
		r, _ := utf8.DecodeRune(n.Value(m.source))
		return r
	}
	return 0
}

// outside reports an address that means something outside of its page.
func outside(address string) bool {
	for _, scheme := range []string{"http://", "https://", "mailto:", "tel:"} {
		if strings.HasPrefix(address, scheme) {
			return true
		}
	}
	return false
}

// unescape resolves backslash escapes and HTML's names of characters.
func unescape(text string) string {
	if !strings.ContainsAny(text, `\&`) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		switch {
		case text[0] == '\\' && len(text) > 1 && util.IsPunct(text[1]):
			b.WriteByte(text[1])
			text = text[2:]
			continue
		case text[0] == '&':
			if end := strings.IndexByte(text[:min(len(text), 40)], ';'); end > 0 {
				b.WriteString(html.UnescapeString(text[:end+1]))
				text = text[end+1:]
				continue
			}
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	return b.String()
}
