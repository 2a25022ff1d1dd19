package lora

import (
	"strings"
	"unicode"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/retrieval"
)

// Scores of cases that are settled by their form, whatever the model thinks.
const (
	certain  = 0.01 // clear
	hopeless = 0.95 // unclear
)

// aimed reports whether a search for the question can be aimed by a code alone:
// an error code or a part number is never too little to go by.
func aimed(question string) bool { return len(retrieval.Identifiers(question)) > 0 }

// signsOfUnclear reports whether anything speaks for a question being unclear
// in itself: a pronoun, hardly a word of content, no question at all, or words
// that the model marks. Without any gate 1 does not ask, whatever the score; on
// the validation cases that costs no right question.
func signsOfUnclear(r gate.Request, x reading) bool {
	return pronouns.MatchString(r.Question) || len(content(r.Question)) <= 1 ||
		!interrogative.MatchString(r.Question) || highest(x.unclear) > .5
}

// garbled reports whether no word of a question is one: each is short, and
// has no vowel or falls into single letters.
func (c *Clarifier) garbled(question string) bool {
	words := wordPattern.FindAllString(question, -1)
	for _, w := range words {
		if w == strings.ToUpper(w) || len(w) < 3 || len(w) > 12 || strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsDigit(r) }) {
			return false
		}
		if strings.ContainsAny(w, "aeiouy") && 2*c.model.Tokenizer().Count(w) < len(w) {
			return false
		}
	}
	return len(words) > 0
}

// inEnglish reports whether a question may be judged by a model that was trained
// on English alone. A question in another language is not unclear for that.
func inEnglish(question string) bool {
	latin, other := 0, 0
	for _, r := range question {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin++
		case unicode.IsLetter(r):
			other++
		}
	}
	if other > latin {
		return false
	}
	foreign, own := 0, 0
	for _, w := range wordPattern.FindAllString(strings.ToLower(question), -1) {
		if stopWords[w] {
			own++
		}
		if foreignWords[w] {
			foreign++
		}
	}
	return foreign == 0 || foreign < own
}

// foreignWords are small words of German, French, Spanish, Italian and Dutch
// that are no English words.
var foreignWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("der das und ist ein eine einen nicht wie wann wo warum wer welche welcher welches kann ich für mit auf den wird sind bei zum zur le la les une est que qui quoi comment quand où pourquoi combien quel quelle dans avec sur je vous puis-je el los una qué cómo cuándo dónde cuánto cuál por para puedo il che quando perché quanto quale è di het een wat wanneer waar kan ik voor") {
		m[w] = true
	}
	return m
}()
