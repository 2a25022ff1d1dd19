package conversation

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// compose gives the pending question with the chosen options and what else was
// said. It takes the first of these forms that is certain to read well, and
// loses nothing of the question in any of them:
//
//  1. the one unclear word is a pronoun, and what was learnt names a thing:
//     "how long does it take?" + "the refund" = "how long does the refund take?"
//  2. what was learnt holds every word of the unclear ones and more:
//     "what does the plan cost?" + "Pro plan" = "what does the Pro plan cost?"
//  3. a short question and what was learnt begins with a preposition, or the
//     question is "what is the X?":
//     "What is the deposit?" + "compact cars" = "What is the deposit for compact cars?"
//  4. in brackets behind the question, where a second clarification adds to it:
//     "Can I return it? (bought in a shop; in March)"
func compose(p Pending, lang string, options, extra []string) string {
	learnt := join(lang, options, true)
	if len(options) == 0 && len(extra) == 1 {
		learnt = extra[0]
	}
	if len(options)+len(extra) == 1 || len(extra) == 0 {
		for _, form := range []func(Pending, string, string) string{inPlace, narrowed, appended} {
			if len(options) == 0 && isName(learnt) && !strings.Contains(learnt, " ") {
				break // one word of the user's may be anything
			}
			if q := form(p, lang, learnt); q != "" && (len(options) < 2 || plural[lastWord(p.Unclear)] || strings.HasPrefix(q, strings.TrimSuffix(strings.TrimSpace(p.Question), "?"))) {
				return q
			}
		}
	}
	parts := slices.Clone(extra)
	if len(options) > 0 {
		parts = slices.Insert(parts, 0, learnt)
	}
	for i, x := range parts {
		parts[i] = cut(x, detailRunes)
	}
	return aside(p.Question, strings.Join(parts, "; "))
}

func lastWord(unclear []string) string {
	if len(unclear) == 0 {
		return ""
	}
	return strings.ToLower(unclear[len(unclear)-1])
}

// aside adds what was learnt in brackets behind a question.
func aside(question, learnt string) string {
	q := strings.TrimRightFunc(question, unicode.IsSpace)
	if learnt == "" {
		return q
	}
	if q == "" {
		return learnt
	}
	if strings.HasSuffix(q, ")") && strings.Contains(q, " (") {
		return strings.TrimSuffix(q, ")") + "; " + learnt + ")"
	}
	return q + " (" + learnt + ")"
}

// bare gives an option's text or a detail without the marks around it.
func bare(s string) string {
	return strings.TrimRight(strings.TrimSpace(s), ".,;:!?…。，；：！？।、 ")
}

var pronouns = map[string]bool{"him": true, "he": true, "she": true, "it": true, "this": true, "that": true, "that one": true, "this one": true, "that thing": true, "this thing": true, "they": true, "them": true, "these": true, "those": true}
var plural = map[string]bool{"they": true, "them": true, "these": true, "those": true}

// inPlace is form 1.
func inPlace(p Pending, lang, learnt string) string {
	if lang != "en" {
		return ""
	}
	var word string
	switch {
	case len(p.Unclear) == 1:
		word = strings.ToLower(strings.TrimSpace(p.Unclear[0]))
	case len(p.Unclear) == 0 && p.Gate == "pre":
		word = "it"
	}
	if !pronouns[word] || !isThing(learnt) || isPlural(learnt) != plural[word] {
		return ""
	}
	at := wordIndex(p.Question, word)
	if len(at) != 1 {
		return ""
	}
	q := p.Question
	before, after := q[:at[0]], q[at[0]+len(word):]
	if len(p.Unclear) == 0 && expletive(before, after) {
		return ""
	}
	if (word == "this" || word == "that" || word == "these" || word == "those") && !closes(after) {
		return "" // "that order": a determiner, or "that" as a conjunction
	}
	return before + mine(learnt) + after
}

// expletive says whether an "it" between before and after may mean nothing, as
// in "is it possible" and "how long does it take to".
func expletive(before, after string) bool {
	next := plains(after)
	for _, w := range []string{"to", "that", "possible", "true", "ok", "okay", "allowed", "raining", "worth", "if", "when"} {
		if slices.Contains(next, w) {
			return true
		}
	}
	return false
}

// closes says whether a pronoun can end before after: at the end of the
// sentence or before a verb or preposition.
func closes(after string) bool {
	w := plains(after)
	if len(w) == 0 || !strings.HasPrefix(after, " ") {
		return true
	}
	switch w[0] {
	case "in", "on", "at", "to", "for", "from", "by", "with", "without", "is", "are", "was", "were", "cost", "take", "work", "mean", "apply", "expire", "end", "start", "before", "after", "again", "now", "today", "tomorrow", "yet", "back", "online", "myself", "and", "or", "if", "when", "happen", "last", "valid", "free", "included", "covered":
		return true
	}
	return false
}

// isThing says whether a text is certain to be a noun phrase in English: it
// begins with an article or a possessive, and no sentence follows.
func isThing(s string) bool {
	w := plains(s)
	if len(w) < 2 || len(w) > 8 || strings.ContainsAny(s, ":;?!()") {
		return len(w) == 1 && isName(s)
	}
	switch w[0] {
	case "the", "my", "our", "his", "her", "their", "your":
	case "a", "an":
	default:
		return isName(s)
	}
	for _, v := range w[1:] {
		switch v {
		case "to", "is", "are", "was", "were", "has", "have", "had", "i", "we", "they", "he", "she", "it", "you", "dont", "didnt", "doesnt", "isnt", "wasnt", "which", "that", "who", "because", "but", "not", "one", "ones", "first", "second", "latter", "former":
			return false
		}
	}
	return !strings.Contains(s, ",")
}

// isName says whether every word of a text begins with a capital or a digit,
// small words between names aside.
func isName(s string) bool {
	fields := strings.Fields(s)
	for i, w := range fields {
		r, _ := utf8.DecodeRuneInString(w)
		if unicode.IsUpper(r) || i > 0 && unicode.IsDigit(r) {
			continue
		}
		if i > 0 && i < len(fields)-1 && (w == "of" || w == "the" || w == "and" || w == "for" || w == "in") {
			continue
		}
		return false
	}
	return len(fields) > 0 && len(fields) <= 6 && !(len(fields) == 1 && utf8.RuneCountInString(s) < 2)
}

func isPlural(s string) bool {
	w := plains(s)
	head := ""
	for _, x := range w {
		switch x {
		case "of", "for", "in", "on", "at", "from", "with", "to", "by":
			goto done
		case "and":
			return true
		}
		head = x
	}
done:
	return len(head) > 3 && strings.HasSuffix(head, "s") && !strings.HasSuffix(head, "ss") && !strings.HasSuffix(head, "us") && !strings.HasSuffix(head, "is") && !isName(s)
}

// mine turns the assistant's "your" into the user's "my".
func mine(s string) string {
	for _, y := range []struct{ your, my string }{{"your ", "my "}, {"Your ", "my "}} {
		if rest, ok := strings.CutPrefix(s, y.your); ok {
			return y.my + rest
		}
	}
	return s
}

// wordIndex gives where the words of phrase stand in s, whole and in that
// order; ASCII case does not count.
func wordIndex(s, phrase string) []int {
	var at []int
	inWord := func(r rune) bool { return isWordRune(r) || isApostrophe(r) || r == '-' }
	for i := 0; i+len(phrase) <= len(s); i++ {
		if !strings.EqualFold(s[i:i+len(phrase)], phrase) {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(s[i+len(phrase):])
		if !inWord(before) && !inWord(after) {
			at = append(at, i)
		}
	}
	return at
}

// narrowed is form 2.
func narrowed(p Pending, lang, learnt string) string {
	if lang != "en" || len(p.Unclear) != 1 {
		return ""
	}
	unclear := strings.TrimSpace(p.Unclear[0])
	u := plains(unclear)
	if len(u) < 2 || u[0] != "the" && u[0] != "my" && u[0] != "our" {
		return ""
	}
	l := plains(learnt)
	if len(l) <= len(u)-1 || asksFirst[l[0]] || len(l) > 6 || strings.ContainsAny(learnt, ",:;?!()") {
		return ""
	}
	for _, w := range u[1:] {
		if !slices.Contains(l, w) {
			return ""
		}
	}
	if l[len(l)-1] != u[len(u)-1] { // the thing itself must stand last: "Pro plan"
		return ""
	}
	at := wordIndex(p.Question, unclear)
	if len(at) != 1 {
		return ""
	}
	determiner := p.Question[at[0] : at[0]+strings.IndexByte(unclear, ' ')]
	thing := learnt
	switch l[0] {
	case "the", "a", "an", "my", "our", "your":
		_, thing, _ = strings.Cut(learnt, " ")
	case "in", "on", "at", "for", "from", "with", "without", "by", "i", "we", "it", "and":
		return ""
	}
	return p.Question[:at[0]] + determiner + " " + thing + p.Question[at[0]+len(unclear):]
}

// plainQuestion is a question to which "for X" can be added: "what is the
// deposit?", with no more than three words for the thing asked about.
var plainQuestion = regexp.MustCompile(`(?i)^(what is|what's|whats|what are|how much is|how much are|how long is|how high is|when is) (the|my) [\pL-]+( [\pL-]+){0,2}\?$`)

// appended is form 3.
func appended(p Pending, lang, learnt string) string {
	q := strings.TrimSpace(p.Question)
	if lang != "en" || !strings.HasSuffix(q, "?") || strings.ContainsAny(q[:len(q)-1], ",;:.?!()") || strings.ContainsAny(learnt, ",;:?!()") {
		return ""
	}
	w := plains(learnt)
	if len(w) == 0 || len(w) > 7 {
		return ""
	}
	switch w[0] {
	case "in", "on", "at", "for", "from", "with", "without", "during", "via", "through", "within":
		if n := len(strings.Fields(q)); len(w) > 1 && n >= 3 && n <= 10 && !slices.Contains(plains(q), w[0]) {
			return q[:len(q)-1] + " " + lowerFirst(learnt) + "?"
		}
		return ""
	}
	if !plainQuestion.MatchString(q) || hasPreposition(q) {
		return ""
	}
	if isThing(learnt) && w[0] != "a" && w[0] != "an" || isPlural(learnt) && isLabel(w) {
		return q[:len(q)-1] + " for " + mine(learnt) + "?"
	}
	return ""
}

func hasPreposition(q string) bool {
	for _, w := range plains(q) {
		switch w {
		case "of", "for", "in", "on", "at", "from", "with", "to", "by", "about", "if", "when", "and", "or":
			return true
		}
	}
	return false
}

// isLabel says whether words may stand behind "for": no sentence, no
// participle at the beginning.
func isLabel(w []string) bool {
	if len(w) > 4 {
		return false
	}
	for _, x := range w {
		if stopOf("en")[x] && x != "and" && x != "for" && x != "of" && x != "the" && x != "my" {
			return false
		}
	}
	return !strings.HasSuffix(w[0], "ed") && !strings.HasSuffix(w[0], "ing")
}

func lowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[n:]); unicode.IsUpper(r) && unicode.IsLower(next) {
		return string(unicode.ToLower(r)) + s[n:]
	}
	return s
}
