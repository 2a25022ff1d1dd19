package reply

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
)

const (
	maxOptions = 6
	maxWords   = 8 // of an option
)

// lead matches what comes before a list of alternatives.
var lead = regexp.MustCompile(`(?i)(?::|\b(?:such as|like|for example|for instance|e\.g\.|namely|including|either|between)\b)`)

// breaks match what stands between alternatives.
var breaks = regexp.MustCompile(`(?i)[,;?!/()"“”]|\.(?:\s|$)|\b(?:or|and|oder|und|ou|et|o|y|e|of|en)\b\s`)

// options finds the alternatives that a clarification names and ties each to
// the passages that hold it. An alternative is taken in the clarification's
// words if a heading holds them, or, two words at least, a text does, and not
// every passage; it must have a passage that no other alternative has. Fewer
// than two make no choice, and the clarification is an open question.
func options(clarification string, passages []retrieval.Passage) []conversation.Option {
	if len(passages) < 2 {
		return nil
	}
	text := clarification
	if m := lead.FindStringIndex(text); m != nil && len(breaks.FindAllString(text[m[1]:], -1)) > 1 {
		text = text[m[1]:]
	}
	var headings, texts [][]string
	for _, p := range passages {
		headings = append(headings, keys(words(p.Title)))
		texts = append(texts, keys(words(p.Title+" "+p.Text)))
	}
	chunks := breaks.Split(text, -1)
	found := alternatives(chunks, headings, 1)
	if len(found) < 2 {
		found = alternatives(chunks, texts, 2)
	}
	var out []conversation.Option
	for _, a := range found {
		o := conversation.Option{ID: strconv.Itoa(len(out) + 1), Text: a.text}
		for _, i := range a.holders {
			o.Passages = append(o.Passages, passages[i].ID)
		}
		out = append(out, o)
	}
	if len(out) < 2 || len(out) > maxOptions {
		return nil
	}
	return out
}

type alternative struct {
	text    string
	holders []int // numbers of the passages that hold it
}

// alternatives gives for each chunk the longest run of words that some of the
// sources hold and not all, if any; the run ends where the chunk does.
func alternatives(chunks []string, sources [][]string, least int) []alternative {
	var out []alternative
	for _, chunk := range chunks {
		ws := words(chunk)
		for len(ws) > 0 && stop[key(ws[len(ws)-1])] {
			ws = ws[:len(ws)-1]
		}
		for from := max(0, len(ws)-maxWords); from < len(ws); from++ {
			run := ws[from:]
			if stop[key(run[0])] || len(run) < least && !strings.ContainsFunc(run[0], unicode.IsDigit) {
				continue
			}
			if holders := holding(keys(run), sources); len(holders) > 0 && len(holders) < len(sources) {
				out = append(out, alternative{strings.Join(run, " "), holders})
				break
			}
		}
	}
	return apart(out)
}

// apart keeps the alternatives that have a passage of their own.
func apart(all []alternative) []alternative {
	for i := 0; i < len(all); i++ { // the same twice
		if slices.ContainsFunc(all[:i], func(a alternative) bool { return slices.Equal(a.holders, all[i].holders) }) {
			all = slices.Delete(all, i, i+1)
			i--
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(a alternative) bool {
		return !slices.ContainsFunc(a.holders, func(h int) bool {
			n := 0
			for _, b := range all {
				if slices.Contains(b.holders, h) {
					n++
				}
			}
			return n == 1
		})
	})
}

// holding gives the numbers of the sources in which the run stands.
func holding(run []string, sources [][]string) []int {
	var out []int
	for i, s := range sources {
		for at := 0; at+len(run) <= len(s); at++ {
			if slices.Equal(s[at:at+len(run)], run) {
				out = append(out, i)
				break
			}
		}
	}
	return out
}

// words cuts a text at whatever is neither letter nor digit nor inside a word.
func words(s string) []string {
	fields := strings.FieldsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("-'’.%€$£&+", r)
	})
	out := fields[:0]
	for _, f := range fields {
		if f = strings.Trim(f, "-'’.&+"); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// key is a word as it is compared: lower case, without the possessive, singular.
func key(w string) string {
	w = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(w), "'s"), "’s")
	if len(w) > 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		w = w[:len(w)-1]
	}
	return w
}

func keys(ws []string) []string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = key(w)
	}
	return out
}

// stop are words that an option neither begins nor ends with.
var stop = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a an the of for to in on at by with from about as is are was were be do doe did can could would will should may
		you your i we me my our it its this that these those which what who whom whose when where how why one ones kind type sort please tell mean
		meant refer referring ask asking like want need know specify clarify provide let be or and any some other another something else not
		der die das den dem ein eine einen welche welcher welches meinen sie ist sind le la les un une des quel quelle el los las cual`) {
		m[w] = true
	}
	return m
}()
