package generation

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/askback/askback/retrieval"
)

// announces matches words that make the number after them an identifier.
var announces = regexp.MustCompile(`(?i)^(?:err|errors?|codes?|faults?|alarms?|parts?|models?|messages?|warnings?|events?)\b`)

// asked gives the identifiers that a question names and an answer must be
// about. A form that does not tell by itself counts where the passages have
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
	announced := false
	for _, id := range retrieval.ScanIdentifiers(question) {
		number := id.Key == digits(id.Key)
		switch {
		case isVersion(id):
			if known[id.Key] {
				out = append(out, id)
			}
		case id.Sure && !number && (len(id.Key) > 3 || families[id.Family]), // A14 may be a road
			!id.Sure && id.Family != "" && families[id.Family],
			number && (id.Sure || announced) && lengths[len(id.Key)]:
			out = append(out, id)
		}
		announced = announces.MatchString(id.Text)
	}
	return out
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
	own, context := retrieval.ScanIdentifiers(c.line), retrieval.ScanIdentifiers(c.context)
	for _, want := range ev.identifiers {
		if holds(own, want) {
			return true
		}
		if rivals(own, want) {
			continue
		}
		if holds(context, want) {
			return true
		}
		for i := c.index - 1; i >= 0 && c.kind != row; i-- {
			before := retrieval.ScanIdentifiers(ev.units[c.passage][i].line)
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
// the line itself.
func (ev *evidence) namesIdentifier(line string) bool {
	for _, want := range ev.identifiers {
		if holds(retrieval.ScanIdentifiers(line), want) {
			return true
		}
	}
	return false
}

// holds says whether ids has want, or for a bare number one with its digits.
func holds(ids []retrieval.Identifier, want retrieval.Identifier) bool {
	for _, id := range ids {
		if id.Key == want.Key || want.Key == digits(want.Key) && digits(id.Key) == want.Key {
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
