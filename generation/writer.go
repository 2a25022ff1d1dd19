package generation

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/askback/askback/internal/untrusted"
)

// writer turns what a model says, piece by piece, into an answer: thoughts
// taken out, citations checked and numbered, nothing shown before the first
// citation.
type writer struct {
	request   Request
	raw       strings.Builder // what the model said
	sent      string          // what went out
	citations []Citation
	dropped   []string
}

func newWriter(r Request) *writer { return &writer{request: r} }

const answerMark = "ANSWER:"

var (
	thought      = regexp.MustCompile(`(?is)<(think|thinking|thought|reasoning|reflection)>.*?</(?:think|thinking|thought|reasoning|reflection)>`)
	thoughtOpen  = regexp.MustCompile(`(?is)<(?:think|thinking|thought|reasoning|reflection)>.*`)
	thoughtClose = regexp.MustCompile(`(?is)^.*</(?:think|thinking|thought|reasoning|reflection)>`)
	closeTag     = regexp.MustCompile(`(?i)</(?:think|thinking|thought|reasoning|reflection)>`)
	notFound     = regexp.MustCompile(`(?i)^\W*NOT[_ ]FOUND\b`)
	// citationMark matches [1], [1, 2], [^1], [Passage 1] and 【1】.
	citationMark = regexp.MustCompile(`(?i) *[\[【] ?(?:(?:passages?|sources?|docs?|documents?|n) ?)?[#^=]?(\d{1,2}(?: ?[,;] ?\^?\d{1,2})*) ?[\]】]`)
	// unfinished matches the start of something at the end of the text that
	// the next piece may complete: a mark, a tag, an escape sequence, spaces.
	unfinished = regexp.MustCompile(`(?: *[\[【][^\]】\n]{0,24}|\x1b[^A-Za-z]{0,24}|\s+)$`)
)

// add takes the model's next piece and gives what can be sent by now.
func (w *writer) add(piece string) string {
	w.raw.WriteString(piece)
	return w.send(false)
}

// send gives the part of the answer that was not sent yet.
func (w *writer) send(final bool) string {
	text := w.visible(final)
	if len(w.citations) == 0 || len(text) <= len(w.sent) || !strings.HasPrefix(text, w.sent) {
		return ""
	}
	delta := text[len(w.sent):]
	w.sent = text
	return delta
}

// visible gives the answer as far as the model has written it.
func (w *writer) visible(final bool) string {
	text := wholeRunes(w.raw.String())
	text = thought.ReplaceAllString(text, "")
	text = thoughtOpen.ReplaceAllString(text, "")
	begun := strings.TrimLeft(text, " \t\r\n*#")
	rest, told := strings.CutPrefix(begun, answerMark)
	if !told {
		if !final {
			return ""
		}
		text = thoughtClose.ReplaceAllString(text, "")
		begun = strings.TrimLeft(text, " \t\r\n*#")
		if rest, told = strings.CutPrefix(begun, answerMark); !told {
			rest = text
		}
	}
	rest = strings.TrimLeft(rest, " \t\r\n*")
	if notFound.MatchString(rest) || !final && strings.HasPrefix("NOT_FOUND", strings.ToUpper(rest)) {
		return ""
	}
	if !final {
		rest = unfinished.ReplaceAllString(untrusted.Settled(rest), "")
	}
	rest = untrusted.WithoutMarks(closeTag.ReplaceAllString(rest, ""))
	text = w.cite(strings.TrimRight(untrusted.Inert(untrusted.Visible(rest)), " \t\n"))
	if a := readable(w.request.Assumption); a != "" && text != "" {
		text = assuming(a) + " " + text
	}
	return text
}

// wholeRunes leaves out the start of a rune at the end, and what is no UTF-8.
func wholeRunes(s string) string {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if utf8.RuneStart(s[len(s)-i]) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				s = s[:len(s)-i]
			}
			break
		}
	}
	return strings.ToValidUTF8(s, "")
}

// cite checks the marks in text against the passages and numbers them anew in
// the order of appearance; one that names no passage is taken out.
func (w *writer) cite(text string) string {
	w.citations, w.dropped = nil, nil
	number := map[int]int{} // passage to citation
	return citationMark.ReplaceAllStringFunc(text, func(mark string) string {
		out := ""
		for _, d := range strings.FieldsFunc(citationMark.FindStringSubmatch(mark)[1], func(r rune) bool { return strings.ContainsRune(",; ^", r) }) {
			n, err := strconv.Atoi(d)
			if err != nil || n < 1 || n > len(w.request.Passages) {
				if !slices.Contains(w.dropped, "["+d+"]") {
					w.dropped = append(w.dropped, "["+d+"]")
				}
				continue
			}
			if number[n] == 0 {
				p := w.request.Passages[n-1]
				w.citations = append(w.citations, Citation{N: len(w.citations) + 1, Passage: p.ID, Title: untrusted.Visible(p.Title), Source: untrusted.Visible(p.Source)})
				number[n] = len(w.citations)
			}
			out += "[" + strconv.Itoa(number[n]) + "]"
		}
		if out == "" || !strings.HasPrefix(mark, " ") {
			return out
		}
		return " " + out
	})
}

// check says what is wrong with how the model's call ended, if anything.
func (w *writer) check(o outcome) error {
	if o.err != nil {
		return o.err
	}
	if o.response == nil || len(o.response.Choices) == 0 || o.response.Choices[0] == nil {
		return ErrCut
	}
	choice := o.response.Choices[0]
	streamed := w.raw.String()
	switch reason := strings.ToLower(choice.StopReason); {
	case reason == "length" || reason == "max_tokens" || strings.HasSuffix(reason, "_max_tokens"):
		return ErrCut
	case streamed == "": // the model does not stream
		w.raw.WriteString(choice.Content)
	case choice.Content == "":
		return ErrCut // seen in adapters whose connection was lost
	case len(choice.Content) > len(streamed) && strings.HasPrefix(choice.Content, streamed):
		w.raw.WriteString(choice.Content[len(streamed):])
	}
	return nil
}

// finish gives what is left to send, and the answer.
func (w *writer) finish() (string, *Answer) {
	delta := w.send(true)
	if w.sent == "" {
		return "", &Answer{Dropped: w.dropped}
	}
	w.quote()
	return delta, &Answer{Text: w.sent, Citations: w.citations, Found: true, Dropped: w.dropped}
}

var ourMark = regexp.MustCompile(`\[(\d{1,2})\]`)

// quote gives each citation the sentence of its passage that shares the most
// with what was said before the mark.
func (w *writer) quote() {
	said := map[int]string{}
	at := 0
	for _, m := range ourMark.FindAllStringSubmatchIndex(w.sent, -1) {
		n, _ := strconv.Atoi(w.sent[m[2]:m[3]])
		before := w.sent[at:m[0]]
		if strings.TrimSpace(before) == "" { // one more mark of the same sentence
			before = said[n-1]
		}
		said[n] += before
		at = m[1]
	}
	for i := range w.citations {
		c := &w.citations[i]
		for _, p := range w.request.Passages {
			if p.ID == c.Passage {
				c.Quote = nearest(p.Text, content(said[c.N]))
				break
			}
		}
	}
}

// nearest gives the unit of text that shares the largest part of its words
// with want.
func nearest(text string, want map[string]bool) string {
	best, quote := -1.0, ""
	for _, u := range split(text) {
		if u.kind == heading {
			continue
		}
		own := content(u.line)
		shared := 0.0
		for s := range own {
			if want[s] {
				shared++
			}
		}
		if score := shared / (3 + float64(len(own))); score > best {
			if q := quotable(text[u.start:u.end]); q != "" {
				best, quote = score, q
			}
		}
	}
	return quote
}
