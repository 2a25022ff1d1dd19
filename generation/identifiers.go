package generation

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	// identifier matches codes and part numbers, a letter first and then two
	// digits or more (ERR-5172, X200), hexadecimal numbers, and versions of
	// three parts or more (2.4.1).
	identifier = regexp.MustCompile(`(?i)\b(?:[a-z]+(?:[-_./#]?[a-z\d]+)*|\d+(?:\.\d+){2,})`)
	// coded matches an identifier written in two words ("err 5172"), and a
	// number that is said to be one ("code 5172").
	coded = regexp.MustCompile(`(?i)\b([a-z]+)[ #:]{1,2}(\d{2,})\b`)
	// calls matches words that announce a number as an identifier.
	calls = regexp.MustCompile(`(?i)^(?:err|errors?|codes?|faults?|alarms?|part|model|number|no|nr|form|ticket|article|item|message|warning|event|id)$`)
)

// identifiers gives the identifiers of s without case and marks: "err5172".
func identifiers(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range identifier.FindAllString(s, -1) {
		if id := squash(w); len(digits(id)) >= 2 {
			m[strings.TrimPrefix(id, "v")] = true
		}
	}
	return m
}

// asked gives the identifiers that a question names. A word and a number count
// where the passages have identifiers of that shape; the number alone stands
// for what is announced in words ("error 5172").
func asked(question, passages string) map[string]bool {
	ids, shapes := identifiers(question), map[string]bool{}
	for id := range identifiers(passages) {
		shapes[shape(id)] = true
		shapes[shape(digits(id))] = true
	}
	for _, m := range coded.FindAllStringSubmatch(question, -1) {
		switch id := squash(m[1] + m[2]); {
		case shapes[shape(id)]:
			ids[id] = true
		case calls.MatchString(m[1]) && len(m[2]) >= 3 && shapes[shape(m[2])]:
			ids[m[2]] = true
		}
	}
	return ids
}

// meets says whether ids holds want, or for a bare number one with its digits.
func meets(ids map[string]bool, want string) bool {
	if ids[want] || want != digits(want) {
		return ids[want]
	}
	for id := range ids {
		if digits(id) == want {
			return true
		}
	}
	return false
}

// named says whether a candidate is about an identifier that the question
// names, if it names any: it stands in the candidate or its headings, or is
// the last of its shape that the passage named before it.
func (ev *evidence) named(c candidate) bool {
	if len(ev.identifiers) == 0 {
		return true
	}
	own, context := identifiers(c.line), identifiers(c.context)
	for want := range ev.identifiers {
		if meets(own, want) {
			return true
		}
		if rival(own, want) {
			continue
		}
		if meets(context, want) {
			return true
		}
		for i := c.index - 1; i >= 0 && c.kind != row; i-- {
			before := identifiers(ev.units[c.passage][i].line)
			if meets(before, want) {
				return true
			}
			if rival(before, want) {
				break
			}
		}
	}
	return false
}

// rival says whether ids holds an identifier of the shape of want.
func rival(ids map[string]bool, want string) bool {
	for id := range ids {
		if shape(id) == shape(want) || shape(digits(id)) == shape(want) {
			return true
		}
	}
	return false
}

// shape is an identifier with its digits made equal: "err0000".
func shape(id string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return '0'
		}
		return r
	}, id)
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
