package untrusted

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape matches terminal escape sequences (ECMA-48 CSI, OSC, and two-byte ones).
var escape = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[@-Z\\\\^_a-z]?|\u009b[0-?]*[ -/]*[@-~]")

// Visible makes text safe to show: valid UTF-8 without escape sequences, control
// characters other than newline and tab, and marks that turn the writing
// direction or hide text.
func Visible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, Hidden) {
		return s
	}
	s = escape.ReplaceAllString(strings.ToValidUTF8(s, ""), "")
	return strings.Map(func(r rune) rune {
		if Hidden(r) {
			return -1
		}
		return r
	}, s)
}

// Hidden reports whether a character has no place in a text that is shown.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == '\u200c' || r == '\u200d': // joiners that writing systems and emoji need
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029'
}
