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
// direction or hide text. A break between lines of any other kind becomes a
// newline, so that no two words are joined. Joiners and variation selectors stay
// where a writing system or an emoji needs them.
func Visible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return Hidden(r) || clinging(r) }) {
		return s
	}
	s = escape.ReplaceAllString(strings.ToValidUTF8(s, ""), "")
	var out strings.Builder
	before := ' '
	for _, r := range breaks.Replace(s) {
		if HiddenAfter(before, r) {
			continue
		}
		out.WriteRune(r)
		before = r
	}
	return out.String()
}

// breaks makes one kind of line break of all.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// Hidden reports whether a character has no place in a text that is shown.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case clinging(r): // not everywhere: see HiddenAfter
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		r == utf8.RuneError || r == '\u2028' || r == '\u2029'
}

// HiddenAfter is Hidden for a character after another: joiners and variation
// selectors are seen only where they shape that one.
func HiddenAfter(before, r rune) bool { return Hidden(r) || clinging(r) && !takes(before, r) }

// clinging reports whether a character only shapes the one before it: a joiner
// or a variation selector.
func clinging(r rune) bool {
	return r == '\u200c' || r == '\u200d' || unicode.Is(unicode.Variation_Selector, r)
}

// takes reports whether r, which clings, shapes the character before it:
// anything but a letter of an alphabet without joined letters, a space or
// punctuation, and not another of its kind, since a row of them only hides
// something. An emoji takes a selector and then a joiner; #, * and digits take
// the selector of a key.
func takes(before, r rune) bool {
	const emoji = '\ufe0f'
	switch {
	case clinging(before):
		return before == emoji && r == '\u200d'
	case r == emoji && before < unicode.MaxASCII:
		return strings.ContainsRune("#*0123456789", before)
	}
	return before > unicode.MaxASCII && !unicode.IsSpace(before) && !unicode.IsPunct(before) &&
		!unicode.In(before, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Georgian)
}
