package documents

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// loadText reads plain text: paragraphs between blank lines.
func loadText(_ context.Context, data []byte, d *retrieval.Document) ([]string, error) {
	text, err := decodeText(data)
	if err != nil {
		return nil, err
	}
	d.Blocks = paragraphs(text, "")
	return nil, nil
}

// paragraphs gives the parts of a text between blank lines as blocks.
func paragraphs(text, place string) []retrieval.Block {
	var blocks []retrieval.Block
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			blocks = append(blocks, retrieval.Block{Text: unwrap(lines), Place: place})
			lines = lines[:0]
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			flush()
			continue
		}
		lines = append(lines, line)
	}
	flush()
	return blocks
}

// unwrap joins the lines of a paragraph that was broken to fit a width, so
// that its sentences are whole. A line is taken as broken if it fills most of
// the width and the next one goes on in small letters or the like.
func unwrap(lines []string) string {
	width := 0
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line))
	}
	var b strings.Builder
	for i, line := range lines {
		b.WriteString(line)
		if i == len(lines)-1 {
			break
		}
		next := strings.TrimLeftFunc(lines[i+1], unicode.IsSpace)
		full := width >= 30 && width <= 130 && utf8.RuneCountInString(line) >= width*2/3
		last, _ := utf8.DecodeLastRuneInString(line)
		first, _ := utf8.DecodeRuneInString(next)
		switch {
		case !full || !goesOn(first) || strings.ContainsRune(":|", last):
			b.WriteByte('\n')
		default:
			b.WriteString(joint(last, first))
			lines[i+1] = next
		}
	}
	return b.String()
}

// goesOn reports whether a line that begins with r may continue the one before.
func goesOn(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("(\"'“‘„«「『", r)
}

// joint gives what stands between two lines that are joined: a space, except
// in scripts without spaces.
func joint(last, first rune) string {
	if spaceless(last) && spaceless(first) {
		return ""
	}
	return " "
}

// spaceless reports a letter or mark of a script written without spaces.
func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		r >= 0x3000 && r <= 0x303F || r >= 0xFF00 && r <= 0xFF65
}
