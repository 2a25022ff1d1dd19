package pipeline

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
)

// standalone resolves a question that leans on the dialogue ("and for
// contractors?", "how long does it take?") by the question before it. It gives
// the question as understood, and the wordings to search with, best first. A
// question that stands alone is given back as it is. No language model is
// needed: an identifier, a name or a phrase takes the place of its like in the
// question before; otherwise the earlier question is named beside the new one.
func standalone(turns []conversation.Turn, question string) (understood string, queries []string, resolved bool) {
	before := lastQuestion(turns)
	if before == "" {
		return question, []string{question}, false
	}
	if merged, ok := substituteIdentifier(before, question); ok {
		return merged, []string{merged}, true
	}
	if !leansOnDialogue(question) {
		return question, []string{question}, false
	}
	for _, substitute := range []func(before, rest string) (string, bool){substitutePhrase, substituteName} {
		if merged, ok := substitute(before, ellipsis(question)); ok {
			return merged, []string{merged, question}, true
		}
	}
	root := lastWhole(turns)
	switch named, others := refer(turns, question); {
	case named != "":
		return named, []string{named, before + " " + question, question}, false
	case len(others) > 0 && !slices.ContainsFunc(others, func(o string) bool { return strings.Contains(root, o) }):
		understood = strings.TrimRight(question, " ") + aboutMark + strings.Join(others, ", ") + ")"
		return understood, []string{strings.Join(others, " ") + " " + question, question}, false
	case root == "":
		root = before
	}
	understood = strings.TrimRight(question, " ") + followingMark + root + ")"
	queries = []string{root + " " + question, question}
	if root != before {
		queries = []string{root + " " + question, before + " " + question, question}
	}
	return understood, queries, false
}

// aboutMark stands between a question that leans on a dialogue without a question
// that stands alone and what the dialogue speaks of.
const aboutMark = " (about: "

// lastWhole is the last question that the one before leans on, or that one itself
// if it stands alone: what a chain of follow-ups is about. "" if none stands alone.
func lastWhole(turns []conversation.Turn) string {
	for i := len(turns) - 1; i >= 0; i-- {
		t := turns[i]
		if t.Kind == conversation.KindClarification {
			continue
		}
		if _, small := conversation.Smalltalk(t.Text); small {
			continue
		}
		if _, root, ok := strings.Cut(t.Question, followingMark); ok {
			return strings.TrimSuffix(root, ")")
		}
		if _, _, about := strings.Cut(t.Question, aboutMark); about {
			continue
		}
		return t.Question
	}
	return ""
}

// followingMark stands between a question that leans on the one before it and
// that one, which a bracket closes.
const followingMark = " (following: "

// ellipsis is what an elliptical follow-up is about: "and for contractors?" is
// "for contractors". It is "" for a question that is more than a phrase.
func ellipsis(question string) string {
	rest := strings.TrimRight(strings.TrimSpace(connector.ReplaceAllString(question, "")), "?!. ")
	if len(word.FindAllString(rest, -1)) > 6 || asking.MatchString(rest) || pronoun.MatchString(rest) {
		return ""
	}
	return rest
}

// substituteIdentifier lets a code take the place of the one asked about
// before: "What does ERR-5172 mean?" + "and err-5171?" = "What does err-5171
// mean?". A neighbour's code must not stay in the question. A code after a
// question without one, or in a whole question, stands alone.
func substituteIdentifier(before, question string) (string, bool) {
	now, then := codes(question), codes(before)
	if len(then) > 0 {
		if short := shortened(question, then[len(then)-1]); short != "" {
			now = []string{short}
		}
	}
	if len(now) == 0 {
		return "", false
	}
	rest := ellipsis(question)
	elliptical := rest != "" && len(word.FindAllString(rest, -1)) <= len(word.FindAllString(now[0], -1))+2
	switch {
	case elliptical && len(then) > 0:
		return strings.ReplaceAll(before, then[len(then)-1], now[0]), true
	case elliptical || len(then) > 0:
		return question, true
	}
	return "", false
}

var (
	number    = regexp.MustCompile(`^(?:(?i:for|the|code|number|nr\.?|no\.?|with) )*(\p{Nd}{2,})$`)
	lastDigit = regexp.MustCompile(`\p{Nd}+$`)
)

// shortened is the code that a question names by its number alone, in the way of the
// one asked about before: "and 5171?" after ERR-5172 is about ERR-5171. A number that
// is longer or shorter is another thing.
func shortened(question, like string) string {
	is, digits := number.FindStringSubmatch(ellipsis(question)), lastDigit.FindString(like)
	if is == nil || digits == "" || digits == like || len(is[1]) != len(digits) {
		return ""
	}
	return strings.TrimSuffix(like, digits) + is[1]
}

// codes are the identifiers of a text that are written as one word.
func codes(text string) []string {
	return slices.DeleteFunc(retrieval.Identifiers(text), func(id string) bool { return strings.Contains(id, " ") })
}

// name is a run of words that a writer capitalises or numbers, with another
// word before it.
var name = regexp.MustCompile(`[\p{L}\p{N},]\s+(\p{Lu}[\p{L}\p{N}-]*(?:\s+(?:\p{Lu}[\p{L}\p{N}-]*|\p{N}+))*)`)

// speaker finds who speaks, "I" or "I'm", who is written like a name.
var speaker = regexp.MustCompile(`^I(['’]\p{L}+)?$`)

// substituteName lets a name take the place of the last one: "How many seats
// has the room Cedar?" + "and Elm?" = "How many seats has the room Elm?".
func substituteName(before, rest string) (string, bool) {
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "the "), "for ")
	words := strings.Fields(rest)
	if len(words) == 0 || len(words) > 3 || !unicode.IsUpper([]rune(words[0])[0]) || speaker.MatchString(words[0]) {
		return "", false
	}
	found := slices.DeleteFunc(name.FindAllStringSubmatchIndex(before, -1), func(at []int) bool { return speaker.MatchString(before[at[2]:at[3]]) })
	if len(found) == 0 {
		return "", false
	}
	last := found[len(found)-1]
	return before[:last[2]] + rest + before[last[3]:], true
}

// contextTurns is the number of turns before a question that are its context
// when the sources are searched.
const contextTurns = 3

// dialogueContext is what the user said last and the question, "" if nothing was
// said before.
func dialogueContext(turns []conversation.Turn, question string) string {
	var said []string
	for i := len(turns) - 1; i >= 0 && len(said) < contextTurns; i-- {
		if _, small := conversation.Smalltalk(turns[i].Text); !small {
			said = append(said, turns[i].Text)
		}
	}
	if len(said) == 0 {
		return ""
	}
	slices.Reverse(said)
	return strings.Join(append(said, question), " ")
}

// lastQuestion is the last question that the sources were asked, as understood.
func lastQuestion(turns []conversation.Turn) string {
	for i := len(turns) - 1; i >= 0; i-- {
		t := turns[i]
		if t.Kind == conversation.KindClarification {
			continue
		}
		if _, small := conversation.Smalltalk(t.Text); small {
			continue
		}
		q, _, _ := strings.Cut(t.Question, followingMark)
		q, _, _ = strings.Cut(q, aboutMark)
		return q
	}
	return ""
}

var (
	connector = regexp.MustCompile(`(?i)^\s*(and|or|but|also|what about|how about|same (question )?for|und|oder|et|y|pero)\b[\s,]*`)
	pronoun   = regexp.MustCompile(`(?i)\b(it|its|they|them|their|theirs|these|those|this|that|he|she|him|her|his|hers|there|then|one|ones|the same|the other|another)\b`)
	// expletive finds an "it" or "that" that stands for nothing: "is it
	// possible to", "how long does it take to".
	expletive = regexp.MustCompile(`(?i)\b(is it (possible|ok|okay|allowed|true|necessary)|does it (take|cost) to|it (is|'s) \w+ to|(is|are|was) there|there (is|are)|(?:this|that|these|those) [\p{L}\p{N}]{3,}|one (day|week|month|year|of)|\w+ that )`)
	word      = regexp.MustCompile(`[\p{L}\p{N}]+`)
	asking    = regexp.MustCompile(`(?i)\b(what|when|where|who|whom|which|why|how|is|are|do|does|did|can|could|will|would|should|may|have|has|tell|show|list|explain|was|wie|ist|sind|gibt|kann)\b`)
)

// leansOnDialogue reports whether a question cannot be searched for alone: it
// stands on a pronoun, has no word of content, or is no more than a phrase.
func leansOnDialogue(q string) bool {
	words := word.FindAllString(q, -1)
	if pronoun.MatchString(expletive.ReplaceAllString(q, " ")) && len(words) <= 16 {
		return true
	}
	if !slices.ContainsFunc(wordsOf(q), func(w string) bool { return len(w) >= 3 && !aimless[w] }) {
		return true // "what should I do?"
	}
	if pointing.MatchString(q) && len(words) <= 12 && !name.MatchString(q) {
		return true
	}
	rest := connector.ReplaceAllString(q, "")
	connected := rest != q
	if asking.MatchString(rest) && len(word.FindAllString(rest, -1)) >= 4 {
		return false // a whole question, if perhaps begun with "and"
	}
	return connected || !asking.MatchString(rest) && (len(words) <= 2 || len(words) <= 5 && phraseLike.MatchString(rest))
}

// pointing finds words that point back without a pronoun: "the second one",
// "more examples", "anything else".
var pointing = regexp.MustCompile(`(?i)\b(the (first|second|third|last|former|latter|two|three|others?|difference|differences)( ones?)?\s*([?.!]|$)|(anything|what|who|where|something) else|(more|other|further) (examples?|details?|information|ones)|instead\s*[?.!]|as well\s*[?.!]|too\s*[?.!])`)

// phraseLike begins like a phrase that continues an earlier question.
var phraseLike = regexp.MustCompile(`(?i)^\s*(the|a|an|my|our|for|in|on|at|with|without|to|from|of|about|i'?m|i am|we|only|just)\b`)

var (
	preposition = regexp.MustCompile(`(?i)\b(for|in|on|at|with|to|from|of|about|under|outside|inside)\s+`)
	clauseEnd   = regexp.MustCompile(`[,.;:?!]|$`)
)

// oneName is a name, and nameRun one, or a list of them, at the beginning of a phrase.
const oneName = `\p{Lu}[\p{L}\p{N}-]*(?:\s+(?:\p{Lu}[\p{L}\p{N}-]*|\p{N}+))*`

var nameRun = regexp.MustCompile(`^` + oneName + `(?:(?:,\s+` + oneName + `)*,?\s+(?:and|or|und|oder)\s+(?:the\s+)?` + oneName + `)?`)

// phrases finds the prepositional phrases of a question: where the
// preposition begins, where its object begins, and where that ends, at the next
// preposition or at the clause's end.
func phrases(q string) (out [][3]int) {
	found := preposition.FindAllStringIndex(q, -1)
	for i, p := range found {
		most := len(q)
		if i+1 < len(found) {
			most = max(p[1], found[i+1][0]-1)
		}
		end := min(most, p[1]+clauseEnd.FindStringIndex(q[p[1]:])[0])
		if run := nameRun.FindString(q[p[1]:most]); run != "" {
			end = p[1] + len(run) // "in Ostby open", "for City 2, City 1 and Cargo 2"
		}
		if end > p[1] {
			out = append(out, [3]int{p[0], p[1], end})
		}
	}
	return out
}

// substitutePhrase puts a phrase in the place of the one with the same
// preposition: "What is the limit for employees?" + "and for contractors?" =
// "What is the limit for contractors?".
func substitutePhrase(before, rest string) (string, bool) {
	now := phrases(rest)
	if len(now) == 0 || now[0][0] != 0 {
		return "", false
	}
	lead := strings.TrimSpace(rest[:now[0][1]])
	then := phrases(before)
	for i := len(then) - 1; i >= 0; i-- {
		if o := then[i]; strings.EqualFold(strings.TrimSpace(before[o[0]:o[1]]), lead) {
			return before[:o[1]] + rest[now[0][1]:] + before[o[2]:], true
		}
	}
	return "", false
}
