package untrusted

import (
	"regexp"
	"strings"
)

// active matches what loads or runs something as soon as a text is shown as
// Markdown or HTML: pictures, scripts, and tags with attributes. Code is matched
// first, to be left as it is.
var active = regexp.MustCompile("(?s:```.*?(?:```|\\z))|`[^`\n]+`" +
	`|!\[([^\[\]\n]*)\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\[\]\n]*\])` +
	`|\[([^\[\]\n]*)\]\(\s*(?i:javascript|vbscript|data):[^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)` +
	`|(?i:</?(?:script|style|iframe|object|embed|form|svg|base|meta|link|body)\b[^<>\n]*>)` +
	`|(?i:<\s*/?\s*[a-z][a-z0-9-]*(?:[\s/][^<>\n]*)?[=(][^<>\n]*>)`)

// Inert gives a text without what would load or run something where it is shown
// as Markdown or HTML: of a picture, and of a link to a script, the words stay, of
// a tag with attributes nothing. Code stays as it is.
func Inert(s string) string {
	for range nested {
		if !strings.ContainsAny(s, "[<") {
			return s
		}
		out := active.ReplaceAllStringFunc(s, func(m string) string {
			if m[0] == '`' {
				return m
			}
			return active.ReplaceAllString(m, "$1$2")
		})
		if out == s {
			return s
		}
		s = out
	}
	return s
}

// cites matches the mark of a citation, which is no start of a link.
var cites = regexp.MustCompile(`^\[[\d^, ]+\]$`)

// Settled gives the start of a growing text that Inert treats alike whatever
// follows: without a picture, a link, a tag or a piece of code that is still open
// in its last line.
func Settled(s string) string {
	at := strings.LastIndexByte(s, '\n') + 1
	line := s[at:]
	cut := openTag(line)
	if i := strings.LastIndex(line, "!["); i >= 0 && openPicture(line[i:]) {
		cut = min(cut, i)
	}
	if i := strings.LastIndexByte(line, '['); i >= 0 && !strings.HasSuffix(line[:i], "]") && openPicture(line[i:]) && !cites.MatchString(line[i:]) {
		cut = min(cut, i)
	}
	if strings.HasSuffix(line, "!") {
		cut = min(cut, len(line)-1)
	}
	if strings.Count(line, "`")%2 == 1 {
		cut = min(cut, strings.LastIndexByte(line, '`'))
	}
	return s[:at+cut]
}

// openTag gives where the first tag begins that is not closed, tags inside of its
// attributes included, or the length of the line.
func openTag(line string) int {
	depth, start := 0, len(line)
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '>' && depth > 0:
			depth--
		case line[i] == '<' && (i+1 == len(line) || line[i+1] != ' ' && line[i+1] != '='):
			if depth++; depth == 1 {
				start = i
			}
		}
	}
	if depth == 0 {
		return len(line)
	}
	return start
}

func openPicture(s string) bool {
	end := strings.IndexByte(s, ']')
	if end < 0 || end == len(s)-1 {
		return true
	}
	switch rest := s[end+1:]; rest[0] {
	case '(':
		return strings.Count(rest, "(") > strings.Count(rest, ")")
	case '[':
		return !strings.Contains(rest, "]")
	}
	return false
}
