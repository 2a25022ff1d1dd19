package pipeline

import "unicode/utf8"

// runes makes the pieces of a text valid UTF-8: a rune that is cut between two
// pieces comes with the second, and a byte that belongs to none becomes U+FFFD.
type runes struct{ held string }

// next gives what can be shown once piece is there.
func (r *runes) next(piece string) string {
	text := r.held + piece
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if tail := text[len(text)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				whole = len(text) - i
			}
			break
		}
	}
	r.held = text[whole:]
	return validText(text[:whole])
}

// rest gives what was held back, at the end of the text.
func (r *runes) rest() string { return validText(r.held) }

// validText is the text with U+FFFD for each byte that is not UTF-8.
func validText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}
