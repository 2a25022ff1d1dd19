package generation

import (
	"strings"
	"unicode/utf8"

	"github.com/askback/askback/internal/untrusted"
)

// quotable gives the words of a passage as a citation shows them: raw, which
// is what stands there, or its longest clean part.
func quotable(raw string) string {
	best, start, before := "", 0, ' '
	for i, r := range raw {
		hidden := untrusted.HiddenAfter(before, r) && !strings.HasPrefix(raw[i:], "\r\n")
		if before = r; !hidden {
			continue
		}
		if i-start > len(best) {
			best = raw[start:i]
		}
		_, n := utf8.DecodeRuneInString(raw[i:])
		start = i + n
	}
	if len(raw)-start > len(best) {
		best = raw[start:]
	}
	return strings.TrimSpace(best)
}
