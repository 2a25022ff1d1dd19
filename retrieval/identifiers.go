package retrieval

import (
	"context"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Identifier is the exact name of one thing: an error code, a part number, an
// order number, a version, a configuration key. A passage about a neighbour
// (ERR-5171 for ERR-5172) reads almost the same and is wrong all the same, so
// identifiers are compared exactly and never by likeness.
type Identifier struct {
	// Text is the identifier as it is written.
	Text string
	// Key is equal for all spellings of one identifier: "ERR-5172", "err 5172"
	// and "Err_5172" are all "ERR5172".
	Key string
	// Family is shared by identifiers that differ in their numbers alone, which
	// are the ones taken for each other; "" if it has no such neighbours.
	// Versions have none: what is said of 2.3.0 may well hold for 2.4.1.
	Family string
	// Sure is false if the form alone does not tell: "err 5172" is an identifier
	// where ERR codes are known, "over 5172" is not. The number of such a pair
	// follows as an identifier of its own if it may be one.
	Sure bool
}

// KnownIdentifier says what a store knows about an identifier asked for.
type KnownIdentifier struct {
	Identifier string   `json:"identifier"`        // as it is written in the question
	Known      bool     `json:"known"`             // some passage holds exactly it
	Nearest    []string `json:"nearest,omitempty"` // if not known: stored ones that it may be meant to be, best first
}

// IdentifierStore is what a Retriever also offers if it knows which
// identifiers its passages hold. KnownIdentifiers gives those of the text in
// order, each once; none if the text holds none. It serves to say "ERR-9999 is
// not in the sources; did you mean ERR-5999?".
type IdentifierStore interface {
	KnownIdentifiers(ctx context.Context, text string) ([]KnownIdentifier, error)
}

// Identifiers gives the sure identifiers of a text as they are written, in
// order, each once. Quantities, dates, times, years, ranges, ordinals and
// ordinary words with a hyphen are not identifiers.
func Identifiers(text string) []string {
	var found []string
	seen := make(map[string]bool)
	for _, id := range ScanIdentifiers(text) {
		if id.Sure && !seen[id.Key] {
			seen[id.Key] = true
			found = append(found, id.Text)
		}
	}
	return found
}

// ScanIdentifiers gives all that may be an identifier, in order, the unsure ones
// included and repetitions kept.
func ScanIdentifiers(text string) []Identifier {
	if isASCII(text) && !strings.ContainsAny(text, "0123456789_") {
		return nil
	}
	text = plainForm(text)
	var found []Identifier
	tokens := scanTokens(text)
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if i+1 < len(tokens) && isWord(t.text) {
			if id, ok := pair(text, t, tokens[i+1]); ok {
				found = append(found, id)
				if id.Sure {
					i++ // the number is part of it
				}
				continue
			}
		}
		before := ""
		if i > 0 {
			before = tokens[i-1].text
		}
		if maybe, sure := classify(t, before); maybe {
			found = append(found, newIdentifier(t.text, sure))
		}
	}
	return found
}

func newIdentifier(text string, sure bool) Identifier {
	key := identifierKey(text)
	return Identifier{Text: text, Key: key, Family: family(key), Sure: sure}
}

// A token is a run of ASCII letters and digits with single joiners inside.
type token struct {
	text       string
	start, end int
	hash       bool // a # stands before it
}

// plainForm folds compatibility forms (full width, ligatures, no-break space)
// and all dashes, so that what looks the same is the same.
func plainForm(text string) string {
	if isASCII(text) {
		return text
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '\u2010' && r <= '\u2015', r == '\u2212', r == '\u00AD':
			return '-'
		}
		return r
	}, norm.NFKC.String(text))
}

func scanTokens(text string) []token {
	var tokens []token
	for i := 0; i < len(text); {
		if !isAlnum(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) {
			if isAlnum(text[i]) {
				i++
			} else if i+1 < len(text) && isAlnum(text[i+1]) && joins(text[i-1], text[i], text[i+1]) {
				i += 2
			} else {
				break
			}
		}
		if touchesLetter(text, start, i) {
			continue // a piece of a word such as "naïve2"
		}
		if strings.HasSuffix(text[:start], "<|") && strings.HasPrefix(text[i:], "|>") {
			continue // a mark of a chat template, which names nothing that is asked about
		}
		hash := start > 0 && text[start-1] == '#'
		for _, part := range splitSlashes(text[start:i]) {
			tokens = append(tokens, token{text: part.text, start: start + part.start, end: start + part.start + len(part.text), hash: hash})
		}
	}
	return tokens
}

func joins(before, sep, after byte) bool {
	switch sep {
	case '-', '_', '/':
		return true
	case '.':
		return isDigitByte(before) && isDigitByte(after)
	}
	return false
}

// splitSlashes keeps INV/2024/001 whole and takes ERR-5171/ERR-5172 apart.
func splitSlashes(s string) []token {
	if !strings.Contains(s, "/") || slashCode.MatchString(s) {
		return []token{{text: s}}
	}
	var parts []token
	at := 0
	for part := range strings.SplitSeq(s, "/") {
		parts = append(parts, token{text: part, start: at})
		at += len(part) + 1
	}
	return parts
}

// touchesLetter reports whether a letter that is not ASCII but of an alphabet
// with word spaces stands directly at either end: then it is part of a word.
func touchesLetter(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return spacedLetter(before) || spacedLetter(after)
}

func spacedLetter(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

var (
	slashCode = regexp.MustCompile(`^([A-Z]{2,}(/[0-9]+)+|[a-z]{2,}(/[0-9]+){2,})$`)
	version   = regexp.MustCompile(`^[0-9]+(\.[0-9]+){2,}$`)
	vVersion  = regexp.MustCompile(`^[vV][0-9]+(\.[0-9]+)+(-?[A-Za-z]+\.?[0-9]*)?$`)
	preRel    = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+-?(rc|beta|alpha|RC|Beta|Alpha)[0-9]*$`)
	dateLike  = regexp.MustCompile(`^([0-9]{1,2}[/-][0-9]{1,2}[/-][0-9]{2}|(0[1-9]|[12][0-9]|3[01])\.(0[1-9]|1[0-2])\.[0-9]{2}|[0-9]{1,2}[./-][0-9]{1,2}[./-](19|20)[0-9]{2}|(19|20)[0-9]{2}[./-][0-9]{1,2}[./-][0-9]{1,2}|(19|20)[0-9]{2}(0[1-9]|1[0-2])[0-3][0-9])$`)
	year      = regexp.MustCompile(`^(19|20)[0-9]{2}$`)
	timeSpan  = regexp.MustCompile(`^[0-9]{1,2}([aApP][mM])?-[0-9]{1,2}([aApP][mM])?$`)
	digitsAZ  = regexp.MustCompile(`^[0-9]{4,}-?[A-Z]{1,3}$`)
	// Words before a number that names something.
	numberRef = wordSet(`order ticket invoice case reference ref part article item serial number no id nr code`)
	units     = wordSet(`kg mg g km m cm mm ml l gb mb kb tb ms s h min k px p w kw v hz khz mhz ghz mah ah wh kwh nm rpm gsm mbps am pm
		eur usd gbp chf c f x`)
	// Words before a number that is a quantity or a date, in upper case.
	notCode = wordSet(`USD EUR GBP CHF JPY INR CNY AUD CAD SEK NOK DKK PLN CZK BRL MXN ZAR SGD HKD NZD
		AND OR THE FOR OF TO IN BY AT ON AS A AN S IS ARE WAS WERE OVER UNDER ABOUT MAX MIN FROM THAN PAY ALL UP ONLY WITH
		BETWEEN SINCE UNTIL TILL BEFORE AFTER DURING WITHIN AROUND THROUGH THIS THAT LAST NEXT YEAR YEARS
		JAN FEB MAR APR MAY JUN JUL AUG SEP SEPT OCT NOV DEC
		JANUARY FEBRUARY MARCH APRIL JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER`)
)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// classify tells whether a token may be an identifier, and whether its form
// alone makes that sure. before is the token before it.
func classify(t token, before string) (maybe, sure bool) {
	s := t.text
	letters, digits, upper := count(s)
	switch {
	case digits == 0:
		// A configuration key: words joined by underscores.
		ok := strings.Contains(s, "_") && letters >= 4
		return ok, ok
	case dateLike.MatchString(s):
		return false, false
	case vVersion.MatchString(s), preRel.MatchString(s), version.MatchString(s):
		return true, true
	case letters == 0:
		return classifyNumber(s, digits, t.hash || numberRef[strings.ToLower(before)])
	case isDigitByte(s[0]):
		// 30-day, 10am and 250kg are quantities; 4711-A and 7f3e9a are names.
		switch {
		case timeSpan.MatchString(s), isUnit(s):
			return false, false
		case digitsAZ.MatchString(s), digits >= 2 && runs(s) >= 4 && !strings.Contains(s, "-"), digits >= 3 && runs(s) >= 3 && upper == letters:
			return true, true
		}
		return digits >= 3 && upper == letters, false
	case digits == 1:
		return true, upper == letters && strings.ContainsAny(s, "-_")
	case upper == 0 && digits <= 2 && strings.Contains(s, "-"), upper == 0 && letters > 4 && digits <= 2:
		return true, false // under-18, level12
	case upper == 0 && strings.Contains(s, "-") && year.MatchString(s[strings.LastIndexByte(s, '-')+1:]):
		return false, false // mid-2024
	}
	return true, true
}

func classifyNumber(s string, digits int, named bool) (maybe, sure bool) {
	groups := strings.FieldsFunc(s, func(r rune) bool { return !isDigit(r) })
	switch {
	case len(groups) == 1:
		if year.MatchString(s) {
			return false, false
		}
		sure = named && digits >= 3 || digits >= 6 && !strings.HasSuffix(s, "000")
		return sure || digits >= 4, sure
	case strings.Contains(s, "/"), len(groups) == 2 && (strings.Contains(s, ".") || isRange(groups[0], groups[1])):
		return false, false
	}
	sure = digits >= 7 || named && digits >= 4
	return sure, sure
}

// isRange reports whether a-b is a span such as 10-12 or 2019-2020.
func isRange(a, b string) bool { return len(a) == len(b) && a < b && a[0] != '0' }

// isUnit reports whether digits with letters after them are a quantity. Of
// four digits and a capital that is taken for a name: 4711C, but 5000m.
func isUnit(s string) bool {
	i := strings.IndexFunc(s, func(r rune) bool { return !isDigit(r) })
	unit := strings.Trim(s[i:], "-")
	if len(unit) == 1 && 'A' <= unit[0] && unit[0] <= 'Z' && i >= 4 {
		return false
	}
	return units[strings.ToLower(unit)]
}

// pair joins a word and the number after it, as in "ERR 5172". It is sure if
// the word is a short one in capitals and the number no year or amount.
func pair(text string, word, number token) (Identifier, bool) {
	gap := text[word.end:number.start]
	if gap != " " && gap != " #" && gap != ": " {
		return Identifier{}, false
	}
	_, digits, _ := count(number.text)
	if notCode[strings.ToUpper(word.text)] || digits < 2 || !isDigitByte(number.text[0]) || strings.ContainsAny(number.text, "./") || len(word.text) > 12 || dateLike.MatchString(number.text) {
		return Identifier{}, false
	}
	if letters, _, upper := count(number.text); letters > 1 || upper != letters {
		return Identifier{}, false
	}
	_, _, upper := count(word.text)
	sure := upper == len(word.text) && upper >= 2 && upper <= 6 && digits >= 3 && gap == " " &&
		!numberRef[strings.ToLower(word.text)] && !year.MatchString(number.text)
	return newIdentifier(word.text+" "+number.text, sure), true
}

// identifierKey is the form in which all spellings of an identifier are equal:
// upper case, without the joiners except those between two digits.
func identifierKey(s string) string {
	if vVersion.MatchString(s) {
		s = s[1:]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
		case isAlnum(c):
			b.WriteByte(c)
		case isDigitByte(s[i-1]) && isDigitByte(s[i+1]):
			if c == '.' {
				b.WriteByte('.')
			} else {
				b.WriteByte('-')
			}
		}
	}
	return b.String()
}

// family replaces what may differ between neighbours.
func family(key string) string {
	_, digits, _ := count(key)
	if digits == 0 || version.MatchString(key) || preRel.MatchString(strings.ToLower(key)) || strings.Contains(key, ".") {
		return ""
	}
	var b strings.Builder
	if isDigitByte(key[0]) { // no prefix: the length is all that tells kinds apart
		for i := range len(key) {
			if isDigitByte(key[i]) {
				b.WriteByte('0')
			} else {
				b.WriteByte(key[i])
			}
		}
		return b.String()
	}
	key = strings.TrimRightFunc(key, func(r rune) bool { return !isDigit(r) })
	for i := range len(key) {
		if !isDigitByte(key[i]) {
			b.WriteByte(key[i])
		} else if i == 0 || !isDigitByte(key[i-1]) {
			b.WriteByte('0')
		}
	}
	return b.String()
}

// runs counts the changes between letters and digits, plus one.
func runs(s string) int {
	n := 1
	for i := 1; i < len(s); i++ {
		if isDigitByte(s[i]) != isDigitByte(s[i-1]) {
			n++
		}
	}
	return n
}

func count(s string) (letters, digits, upper int) {
	for i := range len(s) {
		switch c := s[i]; {
		case isDigitByte(c):
			digits++
		case 'A' <= c && c <= 'Z':
			letters++
			upper++
		case 'a' <= c && c <= 'z':
			letters++
		}
	}
	return letters, digits, upper
}

func isWord(s string) bool {
	letters, _, _ := count(s)
	return letters == len(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isDigit(r rune) bool     { return '0' <= r && r <= '9' }
func isDigitByte(c byte) bool { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool {
	return isDigitByte(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
