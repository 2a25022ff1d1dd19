package documents

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// field is a named value in a record: a row of a table or an object of JSON.
type field struct{ name, value string }

// recordBlock makes a record a block of its own, under what it is called.
func recordBlock(headings []string, fields []field, place string) retrieval.Block {
	if label := recordLabel(fields); label != "" {
		headings = append(slices.Clone(headings), label)
		if body := bodyAlone(fields, label); body != "" {
			return retrieval.Block{Headings: headings, Text: body, Place: place}
		}
	}
	return retrieval.Block{Headings: headings, Text: record(fields), Place: place}
}

// bodyNames are the names of fields that hold a record's text.
var bodyNames = []string{"text", "body", "content", "answer", "description"}

// bodyAlone gives the text of a record that has a title and a text and nothing
// else: an article, a question with its answer. It reads as it was written. A
// code stays with its text, which is not found without it.
func bodyAlone(fields []field, label string) string {
	body := ""
	for _, f := range fields {
		value, name := strings.TrimSpace(f.value), strings.ToLower(strings.TrimSpace(f.name))
		switch {
		case value == "", value == label && name != "code" && name != "id":
		case body == "" && slices.Contains(bodyNames, name):
			body = value
		default:
			return ""
		}
	}
	return body
}

// labelNames are the names of fields that say what a record is about, the
// best first.
var labelNames = []string{"title", "name", "question", "subject", "code", "id"}

// recordLabel gives the value that tells a record from others: that of a field
// made for it, else the first, if it is short and has a name.
func recordLabel(fields []field) string {
	const longest = 80 // runes
	best, rank := "", len(labelNames)+1
	for i, f := range fields {
		r := slices.Index(labelNames, strings.ToLower(strings.TrimSpace(f.name)))
		if r < 0 && i == 0 && f.name != "" {
			r = len(labelNames)
		}
		value := strings.TrimSpace(f.value)
		if r < 0 || r >= rank || strings.Contains(value, "\n") || utf8.RuneCountInString(value) > longest ||
			!strings.ContainsFunc(value, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			continue
		}
		best, rank = value, r
	}
	return best
}

// record writes the fields that have a value, in a line if that is readable,
// else one a line.
func record(fields []field) string {
	const longest = 400 // runes in a line
	size, lines := 0, false
	parts := make([]string, 0, len(fields))
	for _, f := range fields {
		value := strings.TrimSpace(f.value)
		if value == "" {
			continue
		}
		lines = lines || strings.Contains(value, "\n")
		if name := strings.TrimSpace(f.name); name != "" {
			value = name + ": " + value
		}
		parts = append(parts, value)
		size += utf8.RuneCountInString(value)
	}
	if lines || size > longest {
		return strings.Join(parts, "\n")
	}
	return strings.Join(parts, "; ")
}
