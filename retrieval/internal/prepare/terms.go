package prepare

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"

	"github.com/askback/askback/retrieval"
)

// Terms cuts a text into the words that BM25 compares, with the identifiers
// that it holds.
func Terms(text string) []string {
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	return slices.Clone(a.terms(text, retrieval.ScanIdentifiers(text)))
}

// terms cuts a text into the words that BM25 compares, in order. Words are
// folded (NFKC, lower case, no accents) and, if plain Latin, stemmed as English;
// stop words are left out. A word with a hyphen is there in parts and joined
// ("e-mail" meets "email"); scripts without word spaces are cut into pairs of
// neighbouring letters; an identifier is there in parts and whole, as its key
// after identifierMark.
func (a *analyzer) terms(text string, identifiers []retrieval.Identifier) []string {
	a.out = a.out[:0]
	folded := fold(text)
	for i := 0; i < len(folded); {
		r, size := utf8.DecodeRuneInString(folded[i:])
		switch {
		case unspaced(r):
			i += a.pairs(folded[i:])
		case isWordRune(r):
			i += a.compound(folded[i:])
		default:
			i += size
		}
	}
	for _, id := range identifiers {
		a.out = append(a.out, identifierMark+id.Key)
	}
	return a.out
}

// identifierMark keeps an identifier's key from being taken for a word.
const identifierMark = "="

// An analyzer makes terms and remembers stems; it serves one goroutine. What
// terms returns is valid until the next call.
type analyzer struct {
	out    []string
	counts map[string]float32 // for Passage
	stems  map[string]string
}

var analyzers = sync.Pool{New: func() any { return &analyzer{counts: make(map[string]float32), stems: make(map[string]string)} }}

// maxStems bounds what an analyzer remembers.
const maxStems = 1 << 16

// compound takes words joined by single marks, such as part-time, snake_case,
// 2.5 and don't, and returns their length in bytes.
func (a *analyzer) compound(s string) int {
	start, i, parts := 0, 0, 0
	joined := false // by a hyphen or an apostrophe between letters, or by a point between digits
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if isWordRune(r) && !unspaced(r) {
			i += size
			continue
		}
		if i == start {
			break
		}
		a.word(s[start:i])
		parts++
		next, _ := utf8.DecodeRuneInString(s[min(i+size, len(s)):])
		if !isWordRune(next) || unspaced(next) || !strings.ContainsRune("-'_.", r) {
			start = i
			break
		}
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		joined = joined || r == '-' && unicode.IsLetter(before) && unicode.IsLetter(next) || r == '.' && unicode.IsDigit(before) && unicode.IsDigit(next)
		i += size
		start = i
	}
	if start < i {
		a.word(s[start:i])
		parts++
	}
	if joined && parts > 1 && i <= maxWord {
		whole := s[:i]
		if unicode.IsDigit(rune(whole[0])) {
			a.add(whole)
		} else {
			a.add(a.stem(strings.ReplaceAll(whole, "-", "")))
		}
	}
	return i
}

// maxWord is the length in bytes from which a run of letters is no word: what
// is longer (base64) is cut there.
const maxWord = 64

func (a *analyzer) word(w string) {
	for len(w) > maxWord {
		cut := maxWord
		for !utf8.RuneStart(w[cut]) {
			cut--
		}
		a.add(w[:cut])
		w = w[cut:]
	}
	if !stopWords[w] {
		a.add(a.stem(w))
	}
}

func (a *analyzer) add(term string) { a.out = append(a.out, term) }

// stem is the Snowball English stemmer ("Porter2") on plain letters; other words
// stay as they are.
func (a *analyzer) stem(w string) string {
	if len(w) <= 3 || !plainLetters(w) {
		return w
	}
	if s, ok := a.stems[w]; ok {
		return s
	}
	if len(a.stems) >= maxStems {
		clear(a.stems)
	}
	s := english.Stem(w, false)
	a.stems[strings.Clone(w)] = s
	return s
}

func plainLetters(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return true
}

// pairs takes a run of letters of scripts without word spaces and adds each
// two neighbours, or a letter that stands alone. It returns the run's length.
func (a *analyzer) pairs(s string) int {
	before, last, n, i := 0, 0, 0, 0
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !unspaced(r) {
			break
		}
		if unicode.Is(unicode.M, r) && n > 0 { // a mark belongs to the letter before it
			i += size
			continue
		}
		if n >= 2 {
			a.add(s[before:i])
		}
		before, last = last, i
		n++
		i += size
	}
	if n == 1 {
		a.add(s[:i])
	} else {
		a.add(s[before:i])
	}
	return i
}

// unspaced reports whether a letter is of a script written without spaces
// between words (or, for Hangul, with spaces that do not part words alike).
func unspaced(r rune) bool {
	return r >= 0x0E00 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan) && !unicode.IsPunct(r) && !unicode.IsDigit(r) || r == 'ー')
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// fold gives the form in which words are compared: compatibility forms and
// case folded, accents dropped from Latin, Greek and Cyrillic letters, and
// dashes and apostrophes made one of a kind.
func fold(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	s = norm.NFKC.String(strings.ToValidUTF8(s, " "))
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			b.WriteByte(byte(r))
		case r >= '\u2010' && r <= '\u2015', r == '\u2212':
			b.WriteByte('-')
		case r == '\u2018', r == '\u2019', r == '\u02BC':
			b.WriteByte('\'')
		case r == '\u00AD', r >= '\u200B' && r <= '\u200D', r == '\u2060', r == '\uFEFF': // invisible
		case r < 0x0530 || r >= 0x1E00 && r < 0x2000:
			foldLetter(&b, unicode.ToLower(r))
		case r >= 0x064B && r <= 0x0652 || r == 0x0640: // Arabic vowel marks, tatweel
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

func foldLetter(b *strings.Builder, r rune) {
	if plain, ok := plainLetter[r]; ok {
		b.WriteString(plain)
		return
	}
	var buffer [utf8.UTFMax]byte
	n := utf8.EncodeRune(buffer[:], r)
	decomposition := norm.NFD.Properties(buffer[:n]).Decomposition()
	if decomposition == nil {
		decomposition = buffer[:n]
	}
	for len(decomposition) > 0 {
		d, size := utf8.DecodeRune(decomposition)
		if d < 0x0300 || d > 0x036F {
			b.WriteRune(d)
		}
		decomposition = decomposition[size:]
	}
}

// plainLetter holds Latin letters that do not decompose, and the final sigma.
var plainLetter = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'þ': "th", 'ı': "i", 'ŋ': "n", 'ħ': "h", 'ς': "σ",
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

var stopWords = func() map[string]bool {
	words := make(map[string]bool)
	for w := range strings.FieldsSeq(`a about above after again against all am an and any are as at be because been before being below
		between both but by can could d did do does doing don down during each few for from further had has have having he her here hers
		him his how i if in into is it its itself just ll m me more most my no nor not now of off on once only or other our ours out over
		own re s same she should so some such t than that the their theirs them then there these they this those through to too under
		until up us ve very was we were what when where which while who whom why will with would you your yours
		please tell know want need many much`) {
		words[w] = true
	}
	return words
}()
