package pipeline

import (
	"regexp"
	"strings"

	"github.com/askback/askback/conversation"
)

// standalone resolves a question that leans on the dialogue ("and for
// contractors?", "how long does it take?") by the question before it. It gives
// the question as understood, and the wordings to search with, best first. A
// question that stands alone is given back as it is. No language model is
// needed: a shared preposition lets the new phrase take the old one's place,
// otherwise the earlier question is named beside the new one.
func standalone(turns []conversation.Turn, question string) (understood string, queries []string) {
	before := lastQuestion(turns)
	if before == "" || !leansOnDialogue(question) {
		return question, []string{question}
	}
	if merged, ok := substitute(before, question); ok {
		return merged, []string{merged, question}
	}
	understood = strings.TrimRight(question, " ") + " (following: " + before + ")"
	return understood, []string{before + " " + question, question}
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
		q, _, _ := strings.Cut(t.Question, " (following: ")
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

// leansOnDialogue reports whether a question cannot be searched for alone.
func leansOnDialogue(q string) bool {
	if connector.MatchString(q) {
		return true
	}
	if pronoun.MatchString(expletive.ReplaceAllString(q, " ")) && len(word.FindAllString(q, -1)) <= 16 {
		return true
	}
	words := word.FindAllString(q, -1)
	return len(words) <= 4 && !asking.MatchString(q)
}

var (
	preposition = regexp.MustCompile(`(?i)\b(for|in|on|at|with|to|from|of|about|under|outside|inside)\s+`)
	clauseEnd   = regexp.MustCompile(`[,.;:?!]|$`)
)

// phrases finds the prepositional phrases of a question: where the
// preposition begins, where its object begins, and where that ends, at the next
// preposition or at the clause's end.
func phrases(q string) (out [][3]int) {
	found := preposition.FindAllStringIndex(q, -1)
	for i, p := range found {
		end := p[1] + clauseEnd.FindStringIndex(q[p[1]:])[0]
		if i+1 < len(found) && found[i+1][0] < end {
			end = found[i+1][0] - 1
		}
		if end > p[1] {
			out = append(out, [3]int{p[0], p[1], end})
		}
	}
	return out
}

// substitute puts the phrase of an elliptical follow-up in the place of the
// phrase with the same preposition: "What is the limit for employees?" + "and
// for contractors?" = "What is the limit for contractors?".
func substitute(before, question string) (string, bool) {
	if !connector.MatchString(question) {
		return "", false
	}
	rest := strings.TrimRight(strings.TrimSpace(connector.ReplaceAllString(question, "")), "?!. ")
	if len(word.FindAllString(rest, -1)) > 6 || asking.MatchString(rest) {
		return "", false
	}
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
