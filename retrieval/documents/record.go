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
	}
	return retrieval.Block{Headings: headings, Text: record(fields), Place: place}
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
