package conversation

import "slices"

// Repeats says whether a clarification was already shown in the conversation:
// the same words, whatever their case and punctuation; or options that rest on
// the same passages; or options of the same texts, unless they rest on other
// passages altogether, as "monthly or yearly" does for another question. asked
// is Conversation.Asked; text and options are those of the new clarification.
func Repeats(asked []Pending, text string, options []Option) bool {
	k, texts, passages := key(text), optionTexts(options), optionPassages(options)
	for _, a := range asked {
		if k != "" && key(a.Text) == k {
			return true
		}
		if len(options) < 2 || len(a.Options) < 2 {
			continue
		}
		then := optionPassages(a.Options)
		if len(passages) > 1 && slices.Equal(then, passages) {
			return true
		}
		if slices.Equal(optionTexts(a.Options), texts) && (len(then) == 0 || len(passages) == 0 || overlap(then, passages)) {
			return true
		}
	}
	return false
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
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
