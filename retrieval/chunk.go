package retrieval

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// DefaultMaxTokens is the size of a passage when ChunkOptions names none. It
// leaves room in an encoder that reads 256 tokens.
const DefaultMaxTokens = 200

// ChunkOptions says how large passages may be. The zero value works.
type ChunkOptions struct {
	// MaxTokens is the most that a passage holds, its title and text together;
	// 0 means DefaultMaxTokens.
	MaxTokens int
	// Count gives the tokens in a text, as the encoder counts them. Nil means
	// EstimateTokens. Because some tokenizers take a long word for one unknown
	// token, a text is never counted as less than a token for each 8 runes.
	Count func(text string) int
}

// runesPerToken is more than any language's average in any tokenizer.
const runesPerToken = 8

// Chunk cuts a document into passages by its structure: a heading or a new
// place (a page, a row) starts a passage, and neighbouring blocks under one
// heading share a passage while they fit. A block that does not fit is cut
// between rows (with the table's header repeated), items, lines or sentences,
// then at spaces, then between characters as a reader sees them, never inside
// a rune. The passages' texts hold all of the blocks' text, in order. The time
// taken is linear in the document's length.
//
// A passage's id comes from the document's id, the title with its headings and
// the text, so it stays the same whatever else changes in the document; of
// passages that are the same, the second and later have ids of their own.
// Passages share the document's Metadata map.
func Chunk(d Document, o ChunkOptions) []Passage {
	c := newChunker(d, o)
	for start := 0; start < len(d.Blocks); {
		end := start + 1
		for end < len(d.Blocks) && sameSection(d.Blocks[start], d.Blocks[end]) {
			end++
		}
		c.section(d.Blocks[start:end])
		start = end
	}
	return c.passages
}

func sameSection(a, b Block) bool {
	return a.Place == b.Place && slices.Equal(a.Headings, b.Headings)
}

// EstimateTokens guesses how many tokens an encoder makes of a text. It guesses
// high: a token for each 5 letters of an ASCII word, each 2 of other
// alphabets, and each mark, digit pair and letter of scripts without spaces.
func EstimateTokens(text string) int {
	fifths := 0 // of a token, so that sums stay whole numbers
	tokens := 0
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			tokens += (fifths + 4) / 5
			fifths = 0
		case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
			fifths++
		case '0' <= r && r <= '9', r < 0x0E00 && unicode.IsLetter(r):
			fifths += 3
		default:
			tokens += (fifths+4)/5 + 1
			fifths = 0
		}
	}
	return tokens + (fifths+4)/5
}

// chunker holds what the sections of one document share.
type chunker struct {
	document Document
	max      int // tokens of a passage, title and text together
	counted  func(string) int
	fixed    int // tokens that counted gives for no text at all
	passages []Passage
	seen     map[string]int // passages by what their id is made from
}

func newChunker(d Document, o ChunkOptions) *chunker {
	d.ID, d.Title, d.Source = CleanText(d.ID), CleanText(d.Title), CleanText(d.Source)
	d.Metadata = cleanMetadata(d.Metadata)
	c := &chunker{document: d, max: o.MaxTokens, counted: o.Count, seen: map[string]int{}}
	if c.max <= 0 {
		c.max = DefaultMaxTokens
	}
	if c.counted == nil {
		c.counted = EstimateTokens
	}
	c.fixed = c.counted("")
	return c
}

func cleanMetadata(metadata map[string]string) map[string]string {
	clean := true
	for key, value := range metadata {
		clean = clean && CleanText(key) == key && CleanText(value) == value
	}
	if clean {
		return metadata
	}
	cleaned := make(map[string]string, len(metadata))
	for key, value := range metadata {
		cleaned[CleanText(key)] = CleanText(value)
	}
	return cleaned
}

// count gives the tokens of a part of a text, never less than the runes allow.
func (c *chunker) count(text string) int {
	return max(c.counted(text)-c.fixed, (utf8.RuneCountInString(text)+runesPerToken-1)/runesPerToken)
}

// section cuts the blocks that stand under the same headings at one place.
func (c *chunker) section(blocks []Block) {
	title := c.title(blocks[0].Headings)
	budget := max(1, c.max-c.fixed-c.count(title+"\n"))
	p := packer{c: c, title: title, place: CleanText(blocks[0].Place), budget: budget}
	for _, b := range blocks {
		p.add(b)
	}
	p.flush()
}

// titleSeparator stands between the document's title and the headings in the
// title of a passage.
const titleSeparator = " > "

// title joins the document's title and the headings. What is too long for half
// of a passage is shortened: the headings between the first and the last go
// first, then the ends of those two.
func (c *chunker) title(headings []string) string {
	parts := make([]string, 0, len(headings)+1)
	for _, part := range append([]string{c.document.Title}, headings...) {
		part = strings.Join(strings.Fields(CleanText(part)), " ")
		if part != "" && (len(parts) != 1 || part != parts[0]) {
			parts = append(parts, part)
		}
	}
	whole := strings.Join(parts, titleSeparator)
	room := (c.max - c.fixed) / 2
	if c.count(whole) <= room {
		return whole
	}
	if len(parts) > 2 {
		parts = []string{parts[0], "…", parts[len(parts)-1]}
	}
	for i, part := range parts {
		parts[i] = c.shorten(part, room/2-2)
	}
	return strings.Trim(strings.Join(parts, titleSeparator), " >")
}

// shorten cuts a heading to a number of tokens.
func (c *chunker) shorten(text string, tokens int) string {
	if c.count(text) <= tokens {
		return text
	}
	used, end := 1, 0 // 1 for the mark of omission
	for _, u := range c.units(nil, text, Paragraph, min(tokens, 8)) {
		if used += u.tokens; used > tokens {
			break
		}
		end = u.end
	}
	if end == 0 {
		return ""
	}
	return strings.TrimSpace(text[:end]) + "…"
}

// packer fills passages with the blocks of one section.
type packer struct {
	c      *chunker
	title  string
	place  string
	budget int // tokens of a passage's text
	parts  []string
	tokens int // of parts
}

// add puts a block into the open passage if it fits whole, else into passages
// of its own, the first of which the open one may still become.
func (p *packer) add(b Block) {
	text := strings.Trim(CleanText(b.Text), "\n")
	header := strings.Trim(CleanText(b.Header), "\n")
	if header != "" {
		header += "\n"
	}
	headerTokens := p.c.count(header)
	if headerTokens > p.budget/2 { // too long to repeat: it becomes rows
		text, header, headerTokens = header+text, "", 0
	}
	if strings.TrimSpace(header+text) == "" {
		return
	}
	whole := headerTokens + p.c.count(text)
	if whole <= p.budget {
		if p.tokens+whole > p.budget {
			p.flush()
		}
		p.put(header+text, whole)
		return
	}
	p.cut(text, header, b.Kind, headerTokens)
}

// cut spreads a block that is too long over passages.
func (p *packer) cut(text, header string, kind BlockKind, headerTokens int) {
	units := p.c.units(nil, text, kind, p.budget-headerTokens)
	for len(units) > 0 {
		n, tokens := 0, headerTokens
		for n < len(units) && p.tokens+tokens+units[n].tokens <= p.budget {
			tokens += units[n].tokens
			n++
		}
		if n == 0 && p.tokens > 0 {
			p.flush()
			continue
		}
		if n == 0 { // a single character may be more than the budget
			n, tokens = 1, tokens+units[0].tokens
		}
		// Tokens of the parts of a word need not add up to those of the word.
		piece := text[units[0].start:units[n-1].end]
		for n > 1 && p.tokens+headerTokens+p.c.count(piece) > p.budget {
			n--
			piece = text[units[0].start:units[n-1].end]
		}
		if strings.TrimSpace(piece) != "" {
			p.put(header+strings.TrimRight(strings.Trim(piece, "\n"), " \t\n"), tokens)
		}
		if units = units[n:]; len(units) > 0 {
			p.flush()
		}
	}
}

func (p *packer) put(part string, tokens int) {
	p.parts = append(p.parts, part)
	p.tokens += tokens + 1 // the blank line between parts
}

// flush makes the open passage one of the document's.
func (p *packer) flush() {
	if len(p.parts) == 0 {
		return
	}
	text := strings.Join(p.parts, "\n\n")
	p.parts, p.tokens = p.parts[:0], 0

	d := p.c.document
	key := d.ID + "\x00" + p.title + "\x00" + text
	p.c.seen[key]++
	if n := p.c.seen[key]; n > 1 {
		key += "\x00" + strconv.Itoa(n)
	}
	sum := sha256.Sum256([]byte(key))

	source := d.Source
	switch {
	case strings.HasPrefix(p.place, "#"):
		source += p.place
	case p.place != "":
		source += ", " + p.place
	}
	p.c.passages = append(p.c.passages, Passage{
		ID:       hex.EncodeToString(sum[:8]),
		Document: d.ID,
		Title:    p.title,
		Source:   source,
		Text:     text,
		Metadata: d.Metadata,
	})
}

// unit is a part of a text that is not cut: text[start:end].
type unit struct {
	start, end int
	tokens     int
}

// units appends to dst the parts of a text, each of at most budget tokens
// where characters allow it, that together are the text.
func (c *chunker) units(dst []unit, text string, kind BlockKind, budget int) []unit {
	levels := []func(string) int{nextSentence, nextSpace, nextRun, nextCharacter}
	switch kind {
	case List:
		levels = append([]func(string) int{nextItem, nextLine}, levels...)
	case Table, Code:
		levels = append([]func(string) int{nextLine}, levels...)
	}
	return c.unitsBy(dst, text, 0, levels, max(1, budget))
}

func (c *chunker) unitsBy(dst []unit, text string, offset int, levels []func(string) int, budget int) []unit {
	for len(text) > 0 {
		n := levels[0](text)
		part := text[:n]
		if tokens := c.count(part); tokens <= budget || len(levels) == 1 {
			dst = append(dst, unit{offset, offset + n, tokens})
		} else {
			dst = c.unitsBy(dst, part, offset, levels[1:], budget)
		}
		text, offset = text[n:], offset+n
	}
	return dst
}

// The functions below give the length of the first part of a text that is not
// empty: a line, an item, a sentence and so on, with the white space after it.

func nextLine(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// nextItem gives the first line and the indented ones after it: a list's item
// with all that is inside it.
func nextItem(text string) int {
	n := nextLine(text)
	for n < len(text) && (text[n] == ' ' || text[n] == '\t' || text[n] == '\n') {
		n += nextLine(text[n:])
	}
	return n
}

// nextSentence goes to the end of a sentence or a line. A full stop after a
// word of one or two letters is taken for an abbreviation's.
func nextSentence(text string) int {
	var end rune // the mark that ends the sentence, if only closing marks followed it
	letters := 0 // in the word before r
	for i, r := range text {
		switch {
		case r == '\n':
			return i + 1
		case strings.ContainsRune(closing, r), strings.ContainsRune(wideStops, r):
		case end != 0 && strings.ContainsRune(wideStops, end):
			return i + spaces(text[i:])
		case end != 0 && unicode.IsSpace(r):
			next := i + spaces(text[i:])
			if first, _ := utf8.DecodeRuneInString(text[next:]); !unicode.IsLower(first) {
				return next
			}
		}
		switch {
		case strings.ContainsRune(closing, r):
		case r == '.' && (letters == 1 || letters == 2):
			end = 0
		case strings.ContainsRune(stops, r), strings.ContainsRune(wideStops, r):
			end = r
		default:
			end = 0
		}
		if unicode.IsLetter(r) {
			letters++
		} else {
			letters = 0
		}
	}
	return len(text)
}

const (
	stops     = ".!?…؟۔।॥።။។།"    // end a sentence when a space follows
	wideStops = "。！？｡．"           // end a sentence without a space
	closing   = "\"')]}”’»」』）】》〉" // may stand between the mark and the end
)

// spaces gives the length of the white space that a text begins with, up to
// and with the first line end.
func spaces(text string) int {
	for i, r := range text {
		if r == '\n' {
			return i + 1
		}
		if !unicode.IsSpace(r) {
			return i
		}
	}
	return len(text)
}

// nextSpace goes past white space, a zero-width space, or a comma of a script
// that is written without spaces.
func nextSpace(text string) int {
	spaced := false
	for i, r := range text {
		switch {
		case unicode.IsSpace(r), r == '\u200b':
			spaced = true
		case spaced:
			return i
		default:
			spaced = strings.ContainsRune("，、；：", r)
		}
	}
	return len(text)
}

// nextRun gives some 16 characters, so that long words are counted in few calls.
func nextRun(text string) int {
	n := 0
	for range 16 {
		if n == len(text) {
			break
		}
		n += nextCharacter(text[n:])
	}
	return n
}

// nextCharacter gives one character as a reader sees it (a grapheme cluster),
// or a part of a cluster too long to be a real one.
func nextCharacter(text string) int {
	const longest, window = 64, 128 // bytes; families of emoji have 25 to 41
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(text[:min(window, len(text))], -1)
	n := len(cluster)
	if n > longest {
		for n = longest; !utf8.RuneStart(text[n]); n-- {
		}
	}
	return n
}
