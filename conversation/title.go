package conversation

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

const (
	// titleLength is how much of a question makes a title, in characters as people
	// count them.
	titleLength = 60
	// MaxTitle is the longest title that can be given, in characters.
	MaxTitle = 200
)

// Title makes a title of a question: its first words, in one line.
func Title(question string) string { return shorten(line(question), titleLength) }

// CleanTitle is a title as it is kept: valid UTF-8 in one line, without control
// characters, and no longer than MaxTitle.
func CleanTitle(title string) string { return shorten(line(title), MaxTitle) }

// line is text in one line.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(valid(text), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// shorten cuts a text that is longer than so many characters, at a word if there is
// one to cut at in its second half.
func shorten(text string, length int) string {
	clusters := uniseg.NewGraphemes(text)
	end, n := 0, 0
	for ; n < length && clusters.Next(); n++ {
		_, end = clusters.Positions()
	}
	if end == len(text) {
		return text
	}
	kept := text[:end]
	if text[end] != ' ' {
		if space := strings.LastIndexByte(kept, ' '); space > len(kept)/2 {
			kept = kept[:space]
		}
	}
	return strings.TrimRight(kept, " ,;:") + "…"
}
