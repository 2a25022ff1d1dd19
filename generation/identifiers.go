package generation

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// announces matches words that make the number after them an identifier.
var announces = regexp.MustCompile(`(?i)^(?:err|errors?|codes?|faults?|alarms?|parts?|models?|messages?|warnings?|events?)\b`)

// asked gives the identifiers that a question names and an answer must be
// about, each once. A form that does not tell by itself counts where the passages have
// identifiers of its family; a version counts if a passage names it, since
// what is said of another may well hold.
func asked(question, passages string) []retrieval.Identifier {
	known, families, lengths := map[string]bool{}, map[string]bool{}, map[int]bool{}
	for _, id := range retrieval.ScanIdentifiers(passages) {
		known[id.Key] = true
		if id.Sure {
			families[id.Family] = true
			lengths[len(digits(id.Key))] = true
		}
	}
	var out []retrieval.Identifier
	there := map[string]bool{}
	add := func(id retrieval.Identifier) {
		if !there[id.Key] {
			there[id.Key] = true
			out = append(out, id)
		}
	}
	announced := false
	for _, id := range retrieval.ScanIdentifiers(question) {
		number := id.Key == digits(id.Key)
		switch {
		case isVersion(id):
			if known[id.Key] {
				add(id)
			}
		case id.Sure && !number && (len(id.Key) > 3 || families[id.Family]), // A14 may be a road
			!id.Sure && id.Family != "" && families[id.Family],
			number && (id.Sure || announced) && lengths[len(id.Key)]:
			add(id)
		}
		announced = announces.MatchString(id.Text)
	}
	if len(out) > manyIdentifiers && utf8.RuneCountInString(question) >= longText {
		out = slices.Concat(out[:manyIdentifiers/2], out[len(out)-manyIdentifiers/2:])
	}
	return out
}

// manyIdentifiers is how many identifiers of a question of longText characters or
// more an answer may be about: of a log that has more, the first and the last.
const (
	manyIdentifiers = 64
	longText        = 2000
)

// scan finds the identifiers of the next passage's units, if they matter.
func (ev *evidence) scan(units []unit) {
	if len(ev.identifiers) == 0 {
		return
	}
	found := make([][]retrieval.Identifier, len(units))
	for i, u := range units {
		found[i] = retrieval.ScanIdentifiers(u.line)
	}
	ev.inUnits = append(ev.inUnits, found)
}

func isVersion(id retrieval.Identifier) bool {
	return id.Family == "" && strings.Contains(id.Key, ".")
}

// named says whether a candidate is about an identifier that the question
// names, if it names any: it stands in the candidate or its headings, or is
// the last of its family that the passage named before it.
func (ev *evidence) named(c candidate) bool {
	if len(ev.identifiers) == 0 {
		return true
	}
	for _, want := range ev.identifiers {
		if holds(c.own, want) {
			return true
		}
		if rivals(c.own, want) {
			continue
		}
		if holds(c.around, want) {
			return true
		}
		for i := c.index - 1; i >= 0 && c.kind != row; i-- {
			before := ev.inUnits[c.passage][i]
			if holds(before, want) {
				return true
			}
			if rivals(before, want) {
				break
			}
		}
	}
	return false
}

// namesIdentifier says whether the question names an identifier that stands in
// the candidate itself.
func (ev *evidence) namesIdentifier(c candidate) bool {
	for _, want := range ev.identifiers {
		if holds(c.own, want) {
			return true
		}
	}
	return false
}

// holds says whether ids has want, or for a bare number one with its digits.
func holds(ids []retrieval.Identifier, want retrieval.Identifier) bool {
	number := want.Key == digits(want.Key)
	for _, id := range ids {
		if id.Key == want.Key || number && digits(id.Key) == want.Key {
			return true
		}
	}
	return false
}

// rivals says whether ids has another of the family of want.
func rivals(ids []retrieval.Identifier, want retrieval.Identifier) bool {
	number := want.Key == digits(want.Key)
	for _, id := range ids {
		if want.Family != "" && id.Family == want.Family || number && id.Sure && len(digits(id.Key)) == len(want.Key) {
			return true
		}
	}
	return false
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}
