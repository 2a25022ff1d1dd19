package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/askback/askback/retrieval"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// loadHTML reads a page by way of Markdown, without what is not its text:
// scripts, styles, navigation and forms.
func loadHTML(_ context.Context, data []byte, d *retrieval.Document) ([]string, error) {
	source, err := decodeHTML(data)
	if err != nil {
		return nil, err
	}
	page, err := parseHTML([]byte(source))
	if err != nil {
		d.Blocks = paragraphs(htmlText([]byte(source)), "")
		return []string{"read as plain text: " + err.Error()}, nil
	}
	var warnings []string
	if warning := readMarkdown(page.markdown, d); warning != "" {
		warnings = append(warnings, warning)
	}
	if d.Title == "" {
		d.Title = page.title
	}
	if page.language != "" {
		d.Metadata = map[string]string{"language": page.language}
	}
	return warnings, nil
}

// decodeHTML decodes a page as its byte-order mark or its meta element says,
// else as other text.
func decodeHTML(data []byte) (string, error) {
	marked := bytes.HasPrefix(data, []byte("\xEF\xBB\xBF")) || utf16Encoding(data) != nil
	if enc, name, _ := charset.DetermineEncoding(data, ""); !marked && name != "utf-8" && declares(data) {
		if decoded, err := enc.NewDecoder().Bytes(data); err == nil {
			data = decoded
		}
	}
	return decodeText(data)
}

// declares reports a page that names its encoding where a browser looks for it.
func declares(data []byte) bool {
	return bytes.Contains(bytes.ToLower(data[:min(len(data), 1024)]), []byte("charset"))
}

// page is what is read of an HTML page.
type page struct {
	title    string
	language string
	markdown string
}

// maxHTMLDepth is far above the depth of pages that people read.
const maxHTMLDepth = 200

func parseHTML(source []byte) (page, error) {
	root, err := html.ParseWithOptions(bytes.NewReader(source), html.ParseOptionEnableScripting(false))
	if err != nil {
		return page{}, fmt.Errorf("damaged HTML: %w", err)
	}
	var p page
	depth := 0
	for n := range root.Descendants() {
		switch n.DataAtom {
		case atom.Title:
			if p.title == "" && n.FirstChild != nil {
				p.title = strings.Join(strings.Fields(n.FirstChild.Data), " ")
			}
		case atom.Html:
			for _, a := range n.Attr {
				if a.Key == "lang" {
					p.language = a.Val
				}
			}
		}
		depth = max(depth, depthOf(n, maxHTMLDepth+1))
	}
	if utf8.RuneCountInString(p.title) > maxHeading {
		p.title = ""
	}
	if depth > maxHTMLDepth {
		return page{}, errors.New("HTML with elements nested too deeply")
	}
	convert := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(), strikethrough.NewStrikethroughPlugin()))
	for _, tag := range []string{"head", "nav", "template", "svg", "button", "select", "dialog"} {
		convert.Register.TagType(tag, converter.TagTypeRemove, converter.PriorityEarly)
	}
	markdown, err := convert.ConvertNode(root)
	if err != nil {
		return page{}, fmt.Errorf("damaged HTML: %w", err)
	}
	p.markdown = string(markdown)
	return p, nil
}

// depthOf counts the elements around n, up to a limit.
func depthOf(n *html.Node, limit int) int {
	depth := 0
	for ; n != nil && depth < limit; n = n.Parent {
		depth++
	}
	return depth
}

// htmlText gives the text of HTML without its structure, but for a blank line
// at the borders of blocks.
func htmlText(source []byte) string {
	var b strings.Builder
	tokens := html.NewTokenizer(bytes.NewReader(source))
	hidden := atom.Atom(0) // the element around that is not read
	for {
		switch tokens.Next() {
		case html.ErrorToken: // the end
			return strings.TrimSpace(b.String())
		case html.TextToken:
			if hidden == 0 {
				b.WriteString(html.UnescapeString(string(tokens.Raw())))
			}
		case html.StartTagToken:
			name, _ := tokens.TagName()
			switch tag := atom.Lookup(name); tag {
			case atom.Script, atom.Style, atom.Nav, atom.Template, atom.Svg:
				if hidden == 0 {
					hidden = tag
				}
			case atom.P, atom.Div, atom.Li, atom.Tr, atom.H1, atom.H2, atom.H3, atom.H4, atom.Blockquote, atom.Section:
				b.WriteString("\n\n")
			case atom.Br:
				b.WriteByte('\n')
			case atom.Td, atom.Th:
				b.WriteByte(' ')
			}
		case html.EndTagToken:
			if name, _ := tokens.TagName(); atom.Lookup(name) == hidden {
				hidden = 0
			}
		}
	}
}
