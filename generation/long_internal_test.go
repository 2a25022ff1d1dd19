package generation

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestLongQuestion counts what is compared of a very long question: its ends, and
// the identifiers at its ends.
func TestLongQuestion(t *testing.T) {
	var log strings.Builder
	for i := range 3500 {
		fmt.Fprintf(&log, "ERR-%04d ", i)
	}
	passages := "ERR-5171: the pump runs dry."
	text := shorten("Why? " + log.String() + "Who is to be told?")
	if len(text) > longestQuestion+1 || !strings.HasPrefix(text, "Why? ERR-0000") || !strings.HasSuffix(text, "ERR-3499 Who is to be told?") {
		t.Errorf("of a log %d bytes are read: %.40q ... %q", len(text), text, text[len(text)-40:])
	}
	ids := asked(text, passages)
	if len(ids) != manyIdentifiers || ids[0].Text != "ERR-0000" || ids[len(ids)-1].Text != "ERR-3499" {
		t.Errorf("of a log %d identifiers are compared: %v", len(ids), ids)
	}
	if ids := asked(strings.Repeat("ERR-5172 ", 1000), passages); len(ids) != 1 {
		t.Errorf("an identifier that is repeated is compared %d times", len(ids))
	}
	list := log.String()[:9*150]
	if ids := asked(shorten(list), passages); len(ids) != 150 {
		t.Errorf("of a list of 150 identifiers %d are compared", len(ids))
	}
	if text := shorten(strings.Repeat("問", 9000)); !utf8.ValidString(text) || strings.Contains(text, "\uFFFD") || len(text) > longestQuestion+1 {
		t.Errorf("a long text is cut within a letter: %d bytes", len(text))
	}
}
