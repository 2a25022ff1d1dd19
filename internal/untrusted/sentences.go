package untrusted

import (
	"regexp"

	"github.com/rivo/uniseg"
)

// clings matches where a sentence has ended although Unicode's rules see none: a
// bracket, a tag or a quotation begins after it. What a stranger put there must
// not pass for the sentence before.
var clings = regexp.MustCompile("[.!?。！？][\"”’')\\]]?[ \\t]+[{}\\[\\]<>＜【|\"“=#`~^@*_\\\\]")

// Sentences yields the places of the sentences of a paragraph, in order and
// without gaps, by Unicode's rules (UAX 29); what follows a sentence and is no
// word stands alone.
func Sentences(text string) func(yield func(start, end int) bool) {
	return func(yield func(start, end int) bool) {
		start, at, state := 0, 0, -1
		for rest := text; rest != ""; {
			var s string
			s, rest, state = uniseg.FirstSentenceInString(rest, state)
			at += len(s)
			for {
				m := clings.FindStringIndex(text[start:at])
				if m == nil {
					break
				}
				// The last character of the match begins the next sentence.
				next := start + m[1] - len(lastRune(text[start+m[0]:start+m[1]]))
				if !yield(start, next) {
					return
				}
				start = next
			}
			from := start
			for _, end := range ends(text[start:at]) {
				if !yield(start, from+end) {
					return
				}
				start = from + end
			}
		}
	}
}

func lastRune(s string) string {
	for i := len(s) - 1; i > 0; i-- {
		if s[i]&0xC0 != 0x80 {
			return s[i:]
		}
	}
	return s
}

// stop matches the end of a sentence that goes on in lower case, which Unicode's
// rules take for an abbreviation.
var stop = regexp.MustCompile(`[.!?]["”')\]]*[ \t]+`)

// ends gives where a sentence ends: at its end, and if it speaks to the assistant
// at each full stop in it, so that what it clings to is not lost with it.
func ends(s string) []int {
	var out []int
	if m := stop.FindAllStringIndex(s, -1); len(m) > 0 && m[0][1] < len(s) && Commands(s) {
		for _, m := range m {
			if m[1] < len(s) {
				out = append(out, m[1])
			}
		}
	}
	return append(out, len(s))
}
