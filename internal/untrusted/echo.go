package untrusted

import (
	"regexp"
	"slices"
	"strings"
)

// echoed is the share of a question's words that another question holds if it
// asks the same.
const echoed = 0.6

var (
	wordPattern = regexp.MustCompile(`[\p{L}\p{N}]+`)
	asks        = regexp.MustCompile("[?？][\"”’')\\]]*\\s*$")
)

// WithoutEcho gives a text without what only repeats a question: its words, one
// after the other, and sentences that ask the same in nearly the same words. Such
// words bring a text near to the question and answer nothing. It is the text itself
// if there are none. What asks for more than the question, as "What is the fee for
// staff?" does after "What is the fee?", stays: it tells texts apart. Of a question
// without a question mark, which may be words typed as into a search box and then
// stand in what answers it, only what is asked with one counts.
func WithoutEcho(text, question string) string {
	asked := wordPattern.FindAllString(strings.ToLower(question), -1)
	if len(asked) < 3 {
		return text
	}
	if cut := withoutRun(text, asked, !strings.ContainsAny(question, "?？")); cut != text {
		text = strings.TrimSpace(cut)
	}
	if !strings.ContainsAny(text, "?？") {
		return text
	}
	var kept strings.Builder
	cut := false
	for line := range strings.Lines(text) {
		for from, to := range Sentences(line) {
			if s := line[from:to]; asks.MatchString(s) && same(s, asked) {
				cut = true
			} else {
				kept.WriteString(s)
			}
		}
	}
	if !cut {
		return text
	}
	return strings.TrimSpace(kept.String())
}

// small are words that a question asks the same with and without.
var small = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("a an the is are do does can i we you my our your it this that there here of for to in on at and or so please") {
		m[w] = true
	}
	return m
}()

// same reports whether a sentence holds most of the words asked and no other that
// says something.
func same(sentence string, asked []string) bool {
	words := wordPattern.FindAllString(strings.ToLower(sentence), -1)
	if slices.ContainsFunc(words, func(w string) bool { return !small[w] && !slices.Contains(asked, w) }) {
		return false
	}
	slices.Sort(words)
	n := 0
	for _, w := range asked {
		if _, ok := slices.BinarySearch(words, w); ok {
			n++
		}
	}
	return float64(n) >= echoed*float64(len(asked))
}

// withoutRun leaves out each run of the words asked that does not go on, and the
// marks that end it; if marked, only those that end with a question mark.
func withoutRun(text string, asked []string, marked bool) string {
	places := wordPattern.FindAllStringIndex(text, -1)
	var kept strings.Builder
	at := 0
	for i := 0; i+len(asked) <= len(places); i++ {
		run := true
		for k, w := range asked {
			if p := places[i+k]; !strings.EqualFold(text[p[0]:p[1]], w) {
				run = false
				break
			}
		}
		last := i + len(asked) - 1
		if !run || goesOn(text, places, last) && !strings.EqualFold(text[places[last+1][0]:places[last+1][1]], asked[0]) {
			continue
		}
		rest := strings.TrimLeft(text[places[last][1]:], "?!.？！。\"”’'")
		end := len(text) - len(rest)
		if marked && !strings.ContainsAny(text[places[last][1]:end], "?？") {
			continue
		}
		kept.WriteString(text[at:places[i][0]])
		i, at = last, end
	}
	if at == 0 {
		return text
	}
	return kept.String() + text[at:]
}

// goesOn reports whether only space stands between a word of a text and the next.
func goesOn(text string, places [][]int, word int) bool {
	if word+1 == len(places) {
		return false
	}
	between := text[places[word][1]:places[word+1][0]]
	return strings.TrimSpace(between) == "" && !strings.Contains(between, "\n")
}
