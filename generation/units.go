package generation

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/internal/untrusted"
)

// kind says what a unit of a passage is.
type kind uint8

const (
	prose   kind = iota // a sentence
	item                // an item of a list, or a sentence of a long one
	row                 // a row of a table
	code                // a fenced block
	heading             // a heading or a table's header: context, never an answer
)

// unit is the smallest piece of a passage that is quoted: text[start:end].
type unit struct {
	start, end int
	kind       kind
	lead       int    // item: index of the sentence that introduces the list, else -1
	numbered   bool   // item of a numbered list
	line       string // how a person reads it: one line (code keeps its own)
}

// longest is the number of bytes past which a sentence without end marks is
// cut at the next good place.
const longest = 600

var (
	itemMark   = regexp.MustCompile(`^\s*(?:[-*+•‣◦–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])[ \t]+`)
	headMark   = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+`)
	tableRule  = regexp.MustCompile(`^[\s|:+=-]*-[\s|:+=-]*$`)
	emphasis   = regexp.MustCompile(`\*\*|__`)
	link       = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\s]*(?:\s+"[^"]*")?\)`)
	spaces     = regexp.MustCompile(`\s+`)
	abbrevTail = regexp.MustCompile(`(?i)(?:^|[\s("'])(?:dr|mr|mrs|ms|prof|st|no|nr|art|sec|fig|eq|vol|ch|cf|e\.g|i\.e|eg|ie|approx|ca|incl|excl|max|min|tel|ext|vs|pp?|para|ref|dept|est|[a-z])\.$`)
)

// split cuts text into units, in order and without overlap. Every letter and
// digit of text lies in one of them.
func split(text string) []unit {
	s := splitter{text: text, lead: -1}
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		s.line(at, end)
		at = end
	}
	s.flush()
	return s.units
}

// splitter reads a passage line by line and gathers lines that belong
// together in text[from:to].
type splitter struct {
	text     string
	units    []unit
	from, to int  // the open block; empty if from == to
	open     kind // what the open block is
	numbered bool
	lead     int      // what introduces the list being read
	header   []string // cells of the table being read
	fence    string   // what closes the code block being read
}

func (s *splitter) line(at, end int) {
	raw := s.text[at:end]
	trimmed := strings.TrimSpace(raw)
	switch {
	case s.fence != "":
		s.to = end
		if strings.HasPrefix(trimmed, s.fence) {
			s.flush()
			s.fence = ""
		}
		return
	case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
		s.flush()
		s.from, s.to, s.open, s.fence = at, end, code, trimmed[:3]
		return
	case strings.HasPrefix(trimmed, "|") && strings.Count(trimmed, "|") > 1, strings.Count(trimmed, "\t") > 0 && !itemMark.MatchString(raw) && s.open == prose:
		s.tableRow(at, end, trimmed)
		return
	}
	s.header = nil
	switch {
	case trimmed == "":
		s.flush()
	case headMark.MatchString(raw):
		s.flush()
		s.lead = -1
		s.add(at, end, heading)
	case itemMark.MatchString(raw):
		s.startItem(at, end, raw)
	case s.from == s.to:
		s.from, s.to, s.open = at, end, prose
		if !indented(raw) {
			s.lead = -1
		}
	case s.open == prose && recordBreak(s.text[s.from:s.to], trimmed):
		s.flush()
		s.from, s.to, s.open = at, end, prose
	default:
		s.to = end
	}
}

func indented(line string) bool { return line[0] == ' ' || line[0] == '\t' }

// recordBreak says whether a new line starts something new, as in lines of
// "key: value", and not the next words of a wrapped sentence.
func recordBreak(block, next string) bool {
	last := strings.TrimSpace(block)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	r, _ := utf8.DecodeRuneInString(next)
	return utf8.RuneCountInString(last) < 50 && !strings.HasSuffix(last, ",") && !unicode.IsLower(r)
}

func (s *splitter) startItem(at, end int, raw string) {
	if s.open == prose && s.from != s.to || s.lead < 0 {
		s.flush()
		s.lead = s.introduction()
	} else {
		s.flush()
	}
	mark := itemMark.FindString(raw)
	s.from, s.to, s.open = at+len(mark), end, item
	s.numbered = strings.ContainsAny(mark, ".)")
}

// introduction gives the index of the last sentence if it can introduce a list.
func (s *splitter) introduction() int {
	if n := len(s.units); n > 0 {
		u := s.units[n-1]
		if u.kind == prose && (strings.HasSuffix(u.line, ":") || strings.HasSuffix(u.line, "：")) {
			return n - 1
		}
	}
	return -1
}

func (s *splitter) tableRow(at, end int, trimmed string) {
	s.flush()
	s.lead = -1
	if s.header != nil && tableRule.MatchString(trimmed) {
		return
	}
	cells := cellsOf(trimmed)
	if s.header == nil {
		s.header = cells
		s.add(at, end, heading)
		return
	}
	if line := readRow(s.header, cells); line != "" && s.add(at, end, row) {
		s.units[len(s.units)-1].line = line
	}
}

func cellsOf(line string) []string {
	sep := "|"
	if !strings.HasPrefix(line, "|") {
		sep = "\t"
	}
	line = strings.TrimSuffix(strings.TrimPrefix(line, sep), sep)
	cells := strings.Split(strings.ReplaceAll(line, `\|`, "\u2223"), sep)
	for i, c := range cells {
		cells[i] = readable(strings.ReplaceAll(c, "\u2223", "|"))
	}
	return cells
}

// readRow says a table's row in words: "Economy: Deposit 300, Excess 1,200".
func readRow(header, cells []string) string {
	var parts []string
	for i, c := range cells[1:] {
		if c == "" {
			continue
		}
		if i+1 < len(header) && header[i+1] != "" {
			c = header[i+1] + " " + c
		}
		parts = append(parts, c)
	}
	switch {
	case cells[0] == "":
		return strings.Join(parts, ", ")
	case len(parts) == 0:
		return cells[0]
	}
	return cells[0] + ": " + strings.Join(parts, ", ")
}

// flush closes the open block and adds its units.
func (s *splitter) flush() {
	from, to, k := s.from, s.to, s.open
	s.from, s.to, s.open = 0, 0, prose
	switch {
	case from == to:
	case k == code:
		s.add(from, to, code)
	case k == item && len(strings.Fields(s.text[from:to])) <= 60 && to-from <= longest:
		s.add(from, to, item)
	default:
		for start, end := range sentences(s.text[from:to]) {
			s.add(from+start, from+end, k)
		}
	}
}

// add appends text[start:end] without the space around it.
func (s *splitter) add(start, end int, k kind) bool {
	piece := s.text[start:end]
	start += len(piece) - len(strings.TrimLeftFunc(piece, unicode.IsSpace))
	piece = strings.TrimSpace(piece)
	line := readable(piece)
	if k == code {
		line = strings.TrimSpace(untrusted.Visible(piece))
	}
	if line == "" {
		return false
	}
	u := unit{start: start, end: start + len(piece), kind: k, lead: -1, line: line}
	if k == item {
		u.lead, u.numbered = s.lead, s.numbered
	}
	s.units = append(s.units, u)
	return true
}

// sentences yields the places of the sentences of a paragraph, by Unicode's
// rules (see untrusted.Sentences) with abbreviations joined to what follows and endless
// sentences cut.
func sentences(text string) func(yield func(start, end int) bool) {
	flat := strings.NewReplacer("\n", " ", "\r", " ", "\u2028", "   ", "\u2029", "   ", "\u0085", "  ").Replace(text)
	return func(yield func(start, end int) bool) {
		start := 0
		for _, at := range untrusted.Sentences(flat) {
			if at < len(flat) && continues(flat[start:at], flat[at:]) {
				continue
			}
			for at-start > longest {
				n := cut(flat[start:at])
				if !yield(start, start+n) {
					return
				}
				start += n
			}
			if !yield(start, at) {
				return
			}
			start = at
		}
	}
}

// continues says whether the full stop at the end of s belongs to an
// abbreviation, so that the sentence goes on in rest.
func continues(s, rest string) bool {
	if next := rest[0]; strings.ContainsAny(s[len(s)-1:], ".?!") && next < utf8.RuneSelf && next != ' ' && next != '\t' {
		return true // inside an address or a name: x.y?z=1
	}
	s = strings.TrimRight(s, " \t")
	if !strings.HasSuffix(s, ".") || len(s) > longest {
		return false
	}
	m := abbrevTail.FindString(s)
	if m == "" {
		return false
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " \t"))
	word := strings.ToLower(strings.Trim(m, " \t(\"'."))
	switch word {
	case "no", "nr", "p", "pp", "art", "sec", "fig", "eq", "vol", "ch", "ext", "ref", "tel", "para", "max", "min":
		return unicode.IsDigit(r) || r == '§' || r == '+'
	}
	if len(word) == 1 { // an initial: "J. Doe", but not "plan b. The"
		return unicode.IsUpper(rune(strings.Trim(m, " \t(\"'.")[0])) && unicode.IsUpper(r)
	}
	return true
}

// cut finds where to cut a sentence that is too long: at a clause, else a
// space, else a rune.
func cut(s string) int {
	for _, sep := range []string{"; ", ", ", " ", "；", "，", "、"} {
		if i := strings.LastIndex(s[:longest], sep); i > longest/3 {
			return i + len(sep)
		}
	}
	n := longest
	for n > longest-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// readable gives one line without control characters, without the marks of
// emphasis and links, and without markup that loads or runs something.
func readable(s string) string {
	s = link.ReplaceAllString(untrusted.Visible(s), "$1")
	s = emphasis.ReplaceAllString(untrusted.Inert(s), "")
	return strings.TrimSpace(spaces.ReplaceAllString(s, " "))
}
