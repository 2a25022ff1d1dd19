package encoder

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// word is a normalised word and where each of its runes comes from.
type word struct {
	runes   []wordRune
	barrier int // runes before it cannot be passed by canonical reordering

	text    []byte // the runes in UTF-8, made by encode
	offsets []int  // where each rune starts in text, and its end
}

type wordRune struct {
	r          rune
	class      uint8 // canonical combining class
	start, end int   // bytes of the original text
}

func (w *word) reset() {
	w.runes = w.runes[:0]
	w.barrier = 0
}

// encode gives the word in UTF-8 and fills in offsets.
func (w *word) encode() []byte {
	w.text, w.offsets = w.text[:0], w.offsets[:0]
	for _, r := range w.runes {
		w.offsets = append(w.offsets, len(w.text))
		w.text = utf8.AppendRune(w.text, r.r)
	}
	w.offsets = append(w.offsets, len(w.text))
	return w.text
}

// add appends a decomposed rune, keeping marks in canonical order. The places
// in the original text stay in theirs, so that offsets never decrease.
func (w *word) add(r wordRune) {
	w.runes = append(w.runes, r)
	if r.class == 0 {
		w.barrier = len(w.runes)
		return
	}
	for i := len(w.runes) - 1; i > w.barrier; i-- {
		a, b := &w.runes[i-1], &w.runes[i]
		if a.class <= b.class {
			break
		}
		a.r, a.class, b.r, b.class = b.r, b.class, a.r, a.class
	}
}

// eachWord normalises a text as BERT's uncased models expect and yields its
// words in order; the word is valid during the call only. The steps are those
// of the reference tokenizer: drop controls and invalid bytes, set CJK
// ideographs apart, decompose (NFD), drop non-spacing marks, lower-case, split
// at white space, and set punctuation apart.
func eachWord(text string, yield func(*word)) {
	w := &word{}
	flush := func() {
		if len(w.runes) > 0 {
			yield(w)
		}
		w.reset()
	}
	var decomposed []byte
	for start, r := range text {
		end := start + 1
		if r < utf8.RuneSelf { // most text: no decomposition, no marks
			switch {
			case 'A' <= r && r <= 'Z':
				w.add(wordRune{r: r + ('a' - 'A'), start: start, end: end})
			case r == ' ' || '\t' <= r && r <= '\r' && r != '\v' && r != '\f':
				flush()
			case r < ' ' || r == 0x7f:
				// a control character
			case isPunctuation(r):
				flush()
				w.add(wordRune{r: r, start: start, end: end})
				flush()
			default:
				w.add(wordRune{r: r, start: start, end: end})
			}
			continue
		}
		if r == utf8.RuneError {
			continue // U+FFFD itself, or a byte that is not UTF-8
		}
		end = start + utf8.RuneLen(r)
		if isControl(r) {
			continue
		}
		if unicode.Is(unicode.White_Space, r) {
			flush()
			continue
		}
		apart := isIdeograph(r)
		if apart {
			flush()
		}
		decomposed = norm.NFD.AppendString(decomposed[:0], text[start:end])
		for rest := decomposed; len(rest) > 0; {
			d, n := utf8.DecodeRune(rest)
			class := norm.NFD.Properties(rest).CCC()
			rest = rest[n:]
			if isNonspacing(d) {
				if class == 0 {
					w.barrier = len(w.runes)
				}
				// The mark goes with the letter before it.
				if last := len(w.runes) - 1; last >= 0 && w.runes[last].end == start {
					w.runes[last].end = end
				}
				continue
			}
			d = unicode.ToLower(d)
			if isPunctuation(d) {
				flush()
				w.add(wordRune{r: d, start: start, end: end})
				flush()
				continue
			}
			w.add(wordRune{r: d, class: class, start: start, end: end})
		}
		if apart {
			flush()
		}
	}
	flush()
}

// The reference tokenizer sorts runes as Unicode 8.0 did, and so does this one:
// what came later is a letter to it.
var unicode8 = rangetable.Assigned("8.0.0")

func isControl(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) && unicode.Is(unicode8, r)
}

func isNonspacing(r rune) bool {
	switch r { // those that have changed since
	case 0x1734:
		return true
	case 0x1885, 0x1886, 0xA9BD, 0x111C9:
		return false
	}
	return r >= 0x300 && unicode.Is(unicode.Mn, r) && unicode.Is(unicode8, r)
}

// isPunctuation counts all ASCII symbols as punctuation, as BERT does, and
// U+166D and U+111C9, which have changed since Unicode 8.0.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.IsPunct(r) && unicode.Is(unicode8, r) || r == 0x166D || r == 0x111C9
}

// isIdeograph covers the ranges of CJK ideographs that the reference sets apart.
func isIdeograph(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, 0x4E00 <= r && r <= 0x9FFF, 0xF900 <= r && r <= 0xFAFF:
		return true
	}
	return 0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF || 0x2F800 <= r && r <= 0x2FA1F
}
