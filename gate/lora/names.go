package lora

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/askback/askback/internal/untrusted"
)

// shortNumber is a number that says nothing without the word before it: 4, but
// not 2024.
var shortNumber = regexp.MustCompile(`^\W*\d{1,3}(\.\d+)*\W*$`)

// titleBreaks are where a heading falls into parts.
var titleBreaks = regexp.MustCompile(`\s*(?: > |>|:|;| [-–—|/] |, |\(|\))\s*`)

// nameApart gives each title the part of it that sets it apart from the
// others, in the title's own words: "Warranty: City 2" and "Warranty: Cargo 2"
// are "City 2" and "Cargo 2"; "Refunds bought online" and "Refunds bought in a
// shop" are "online" and "in a shop". A title that nothing sets apart gets "".
func nameApart(titles []string) []string {
	parts := make([][]string, len(titles))
	seen := map[string]int{}
	for i, t := range titles {
		mine := map[string]bool{}
		for _, p := range titleBreaks.Split(t, -1) {
			if p = strings.TrimSpace(p); p != "" {
				parts[i] = append(parts[i], p)
				if k := strings.ToLower(p); !mine[k] {
					mine[k] = true
					seen[k]++
				}
			}
		}
	}
	names := make([]string, len(titles))
	for i, ps := range parts {
		own := slices.DeleteFunc(slices.Clone(ps), func(p string) bool { return seen[strings.ToLower(p)] == len(titles) })
		if len(own) > 0 {
			// The last part that is its own is the most particular one.
			names[i] = own[len(own)-1]
		}
	}
	names = cutCommon(names)
	// Where the particular parts are alike too, the earlier ones tell apart.
	for i := range names {
		for j := range i {
			if strings.EqualFold(names[i], names[j]) {
				names[i], names[j] = "", ""
			}
		}
	}
	return names
}

// cutCommon takes off the words that all names begin with, then those that all
// end with, as long as each keeps a word of its own. A number, or a word beside
// a single other, stays: "City 2" is a name, "City" is not.
func cutCommon(names []string) []string {
	if len(names) < 2 || slices.Contains(names, "") {
		return names
	}
	words := make([][]string, len(names))
	for i, n := range names {
		words[i] = strings.Fields(n)
	}
	for {
		first := words[0][0]
		if slices.ContainsFunc(words, func(w []string) bool {
			return len(w) < 2 || !strings.EqualFold(w[0], first) || len(w) == 2 && shortNumber.MatchString(w[1])
		}) {
			break
		}
		for i := range words {
			words[i] = words[i][1:]
		}
	}
	for {
		last := words[0][len(words[0])-1]
		if strings.ContainsFunc(last, unicode.IsDigit) || slices.ContainsFunc(words, func(w []string) bool {
			return len(w) < 3 || !strings.EqualFold(w[len(w)-1], last)
		}) {
			break
		}
		for i := range words {
			words[i] = words[i][:len(words[i])-1]
		}
	}
	out := make([]string, len(names))
	for i, w := range words {
		out[i] = strings.Join(w, " ")
	}
	return out
}

// shorten cuts a text to at most n words, at the end of a word.
func shorten(text string, n int) string {
	words := strings.Fields(text)
	if len(words) <= n {
		return strings.Join(words, " ")
	}
	return strings.Join(words[:n], " ") + " …"
}

// clean keeps a name taken from a document fit to be shown in a sentence: one
// line, no markup, no control characters.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case untrusted.Hidden(r), strings.ContainsRune("*_`#<>|[]{}", r):
			return -1
		}
		return r
	}, text)
	text = strings.Trim(strings.Join(strings.Fields(text), " "), " .,;:!?？。¿¡-–—")
	if untrusted.Demands(text) {
		return ""
	}
	return text
}
