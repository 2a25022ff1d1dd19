package lora

import (
	"strings"
	"unicode"

	"github.com/askback/askback/retrieval"
)

// certain is the score of a case that is clear by its form, whatever the model
// thinks of it.
const certain = 0.01

// aimed reports whether a search for the question can be aimed by a code alone:
// an error code or a part number is never too little to go by.
func aimed(question string) bool { return len(retrieval.Identifiers(question)) > 0 }

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
	return foreign == 0 || foreign <= own
}

// foreignWords are small words of German, French, Spanish, Italian and Dutch
// that are no English words.
var foreignWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("der das und ist ein eine einen nicht wie wann wo warum wer welche welcher welches kann ich für mit auf dem den wird sind bei zum zur le la les une est que qui quoi comment quand où pourquoi combien quel quelle pour dans avec sur je vous puis-je el los las una qué cómo cuándo dónde cuánto cuál por para con puedo il che come quando dove perché quanto quale è di het een wat hoe wanneer waar kan ik voor met") {
		m[w] = true
	}
	return m
}()
