package reply

import (
	"strings"
	"unicode/utf8"

	"github.com/askback/askback/internal/untrusted"
)

// Text makes a user's or a document's text fit for a prompt: valid UTF-8
// without what a chat template or a terminal would take for its own, and at
// most limit bytes, the middle left out where it is longer.
func Text(s string, limit int) string {
	s = strings.TrimSpace(untrusted.WithoutMarks(untrusted.Visible(s)))
	if len(s) <= limit {
		return s
	}
	head, tail := limit*3/4, len(s)-limit/4
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + " […] " + s[tail:]
}
