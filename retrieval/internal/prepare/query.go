package prepare

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// maxQuery is the number of bytes of a query text that are searched for: of a
// longer one, the first and the last half of that.
const maxQuery = 8192

// Texts gives the texts of a query as they are searched for: valid UTF-8, not
// empty, each once, and not too long.
func Texts(texts []string) []string {
	var out []string
	for _, text := range texts {
		if len(text) > maxQuery {
			head, tail := maxQuery/2, len(text)-maxQuery/2
			for head > 0 && !utf8.RuneStart(text[head]) {
				head--
			}
			for tail < len(text) && !utf8.RuneStart(text[tail]) {
				tail++
			}
			text = text[:head] + "\n" + text[tail:]
		}
		text = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD"))
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// manyIdentifiers is how many identifiers of a text of longText characters or
// more are looked up, and as many that may be some: of a list or a log that has
// more, the first and the last.
const (
	manyIdentifiers = 64
	longText        = 2000
)

// Wanted gives the identifiers that the texts ask for, each once: the sure ones,
// and the others whose family the index knows. Of a long text that has very many
// it gives those at its ends.
func Wanted(texts []string, known func(family string) bool) []retrieval.Identifier {
	var wanted []retrieval.Identifier
	for _, text := range texts {
		pair := ""
		for _, id := range ends(text, retrieval.ScanIdentifiers(text)) {
			if pair != "" && strings.HasSuffix(pair, " "+id.Text) {
				continue // the number of the one before
			}
			pair = ""
			if !id.Sure && !known(id.Family) {
				continue
			}
			if strings.Contains(id.Text, " ") {
				pair = id.Text
			}
			if !slices.ContainsFunc(wanted, func(w retrieval.Identifier) bool { return w.Key == id.Key }) {
				wanted = append(wanted, id)
			}
		}
	}
	return wanted
}

// ends leaves out identifiers in the midst of a long text. What is said twice
// counts once.
func ends(text string, ids []retrieval.Identifier) []retrieval.Identifier {
	if len(ids) <= manyIdentifiers || utf8.RuneCountInString(text) < longText {
		return ids
	}
	keep := make([]bool, len(ids))
	seen := map[bool]map[string]bool{true: {}, false: {}}
	mark := func(i, most int) {
		if seen := seen[ids[i].Sure]; seen[ids[i].Key] || len(seen) < most {
			keep[i], seen[ids[i].Key] = true, true
		}
	}
	for i := range ids {
		mark(i, manyIdentifiers/2)
	}
	for i := len(ids) - 1; i >= 0; i-- {
		mark(i, manyIdentifiers)
	}
	var out []retrieval.Identifier
	for i, id := range ids {
		if keep[i] {
			out = append(out, id)
		}
	}
	return out
}
