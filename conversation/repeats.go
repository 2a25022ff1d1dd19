package conversation

import "slices"

// Repeats says whether a clarification was already shown in the conversation:
// the same text, whatever its case and punctuation; or, for the same pending
// question, the same set of options, by their texts or by the passages behind
// them. asked is Conversation.Asked. options are those of the new
// clarification, text its words.
func Repeats(asked []Pending, text string, options []Option) bool {
	k, texts, passages := key(text), optionTexts(options), optionPassages(options)
	for _, a := range asked {
		if k != "" && key(a.Text) == k {
			return true
		}
		if len(options) < 2 || len(a.Options) < 2 {
			continue
		}
		if slices.Equal(optionTexts(a.Options), texts) {
			return true
		}
		if len(passages) > 1 && slices.Equal(optionPassages(a.Options), passages) {
			return true
		}
	}
	return false
}

func optionTexts(options []Option) []string {
	var s []string
	for _, o := range options {
		s = append(s, key(o.Text))
	}
	slices.Sort(s)
	return slices.Compact(s)
}

func optionPassages(options []Option) []string {
	var s []string
	for _, o := range options {
		s = append(s, o.Passages...)
	}
	slices.Sort(s)
	return slices.Compact(s)
}
