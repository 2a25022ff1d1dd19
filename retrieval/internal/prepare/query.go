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

// Wanted gives the identifiers that the texts ask for, each once: the sure ones,
// and the others whose family the index knows.
func Wanted(texts []string, known func(family string) bool) []retrieval.Identifier {
	var wanted []retrieval.Identifier
	for _, text := range texts {
		pair := ""
		for _, id := range retrieval.ScanIdentifiers(text) {
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
