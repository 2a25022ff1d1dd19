package lora

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

const (
	maxOptions    = 8
	maxShortWords = 6  // a short answer behind an option
	shortScore    = .8 // from which a marked answer is shown there: a ragged one helps nobody
	maxNameWords  = 10 // an option's name
)

// phrase writes the clarification of a request in one of three patterns: two
// or three readings each with its short answer, where the passages give one;
// four to eight as a list; otherwise an open question that names what is
// missing. The options come from the passages in conflict and are tied to them.
func phrase(r gate.Request, x reading) (text string, options []conversation.Option) {
	if r.Stage == gate.Pre {
		if !signsOfUnclear(r, x) {
			return "", nil
		}
		return openQuestion(r, x), nil
	}
	if !x.askable() {
		return "", nil
	}
	var readings []option
	if x.choosable() {
		readings = x.readings(r)
	}
	if len(readings) < 2 {
		return openQuestion(r, x), nil
	}
	short := len(readings) <= 3 && alike(readings)
	var shown []string
	for i, o := range readings {
		options = append(options, conversation.Option{ID: strconv.Itoa(i + 1), Text: o.name, Passages: o.passages})
		s := o.name
		if short {
			s += " (" + o.short + ")"
		}
		shown = append(shown, s)
	}
	if len(readings) <= 3 {
		return fmt.Sprintf("The answer depends on which one you mean: %s?", orList(shown)), options
	}
	var b strings.Builder
	b.WriteString("The answer depends on which one you mean. Which of these is it?")
	for i, s := range shown {
		fmt.Fprintf(&b, "\n%d. %s", i+1, s)
	}
	return b.String(), options
}

// askable reports whether there is something to ask at gate 2 that a person
// would understand: passages whose headings say the same of different things,
// or a question that is unclear in itself.
func (x reading) askable() bool { return x.unclearAlone || x.choosable() }

// choosable reports whether the passages that compete have headings by which a
// user can choose.
func (x reading) choosable() bool {
	a, b := x.topPair()
	return x.plain != nil || a >= 0 && x.parallel[a][b]
}

// openQuestion asks without options, naming the user's unclear words if they
// are known.
func openQuestion(r gate.Request, x reading) string {
	if len(x.unclear) > 0 && x.unclear[0].high >= .5 {
		u := clean(x.unclear[0].text)
		if p := referring(u); p != "" {
			return fmt.Sprintf("I'm not sure what “%s” refers to. What is it about?", p)
		}
		if nounPhrase(u) && len(strings.Fields(u)) < len(strings.Fields(r.Question)) {
			return fmt.Sprintf("Could you say more precisely what you mean by “%s”?", u)
		}
	}
	if p := referring(r.Question); p != "" && len(r.History) == 0 {
		return fmt.Sprintf("I'm not sure what “%s” refers to. What is it about?", p)
	}
	if r.Stage == gate.Post {
		return "The sources answer this differently for different cases. Which case is yours?"
	}
	return "I'm not sure what you mean. Could you say a bit more about what you would like to know?"
}

// referring finds a pronoun that stands for something, so not the "there" of
// "are there".
func referring(text string) string {
	for _, p := range pronouns.FindAllString(text, -1) {
		if !strings.EqualFold(p, "there") {
			return p
		}
	}
	return ""
}

// nounPhrase reports whether words from a question can be quoted back: a few
// words of content, perhaps after "the" or "my", and no verb form among them.
func nounPhrase(text string) bool {
	words := strings.Fields(strings.ToLower(text))
	if len(words) > 0 && (stopWords[words[0]]) && len(words) > 1 {
		if !determiners[words[0]] {
			return false
		}
		words = words[1:]
	}
	for _, w := range words {
		if stopWords[w] || interrogative.MatchString(w) {
			return false
		}
	}
	return len(words) > 0 && len(words) <= 3
}

var determiners = map[string]bool{"the": true, "my": true, "your": true, "our": true, "a": true, "an": true, "this": true, "that": true}

// option is one reading of the question.
type option struct {
	name, short string
	passages    []string // ids
	members     []int    // passages by index
}

// readings finds the passages that compete, names each by what sets it apart
// and merges those that are the same reading. The order is the passages'.
func (x reading) readings(r gate.Request) []option {
	members := x.competing()
	if len(members) < 2 {
		return nil
	}
	titles := make([]string, len(members))
	for i, m := range members {
		titles[i] = r.Passages[m].Title
	}
	apart := nameApart(titles)
	var out []option
	for i, m := range members {
		p := x.passages[m]
		name := clean(apart[i])
		if condition := clean(p.condition.text); name == "" || len(strings.Fields(name)) > maxNameWords {
			name = shorten(condition, maxNameWords)
		}
		if name == "" {
			return nil // cannot be told apart in words: ask openly
		}
		o := option{name: name, passages: []string{r.Passages[m].ID}, members: []int{m}}
		if words := beyond(p.answer.text, name+" "+r.Passages[m].Title); p.answer.score >= shortScore && len(words) > 0 && len(words) <= maxShortWords {
			o.short = clean(strings.Join(words, " "))
		}
		if k := slices.IndexFunc(out, func(o option) bool { return strings.EqualFold(o.name, name) }); k >= 0 {
			out[k].passages = append(out[k].passages, o.passages...)
			continue
		}
		out = append(out, o)
	}
	if len(out) > 3 {
		out = out[:min(len(out), maxOptions)]
	}
	return out
}

// alike reports whether the readings' short answers say the same kind of thing:
// as many numbers in each, and a word that all of them hold. "Takes 6 hours" goes
// with "takes 3.5 hours", and not with "at 80 % after 4 hours".
func alike(readings []option) bool {
	var common []string
	for i, o := range readings {
		words := wordPattern.FindAllString(strings.ToLower(numberPattern.ReplaceAllString(o.short, " ")), -1)
		if len(words) == 0 || len(numbers(o.short)) != len(numbers(readings[0].short)) {
			return false
		}
		if i == 0 {
			common = words
		}
		common = slices.DeleteFunc(common, func(w string) bool { return !slices.Contains(words, w) })
	}
	return len(common) > 0
}

// beyond are the words of an answer after those at its beginning that the
// heading says already, of "2 battery takes 6 hours" under "Battery: Cargo 2"
// the last three, and up to the last one that is no small word.
func beyond(answer, heading string) []string {
	said, words := wordPattern.FindAllString(strings.ToLower(heading), -1), strings.Fields(answer)
	for len(words) > 0 && slices.Contains(said, strings.ToLower(words[0])) {
		words = words[1:]
	}
	for len(words) > 0 && stopWords[strings.ToLower(words[len(words)-1])] {
		words = words[:len(words)-1]
	}
	return words
}

// competing gives the passages that compete with each other, in rank order:
// those that plainly do, else the strongest pair, and each other that competes
// with one of it about as strongly.
func (x reading) competing() []int {
	if x.plain != nil {
		return x.plain
	}
	a, b := x.topPair()
	if a < 0 {
		return nil
	}
	top := x.clash(a, b)
	members := []int{a, b}
	for k := range x.passages {
		if k != a && k != b && x.parallel[k][a] == x.parallel[a][b] && max(x.clash(k, a), x.clash(k, b)) >= .6*top && x.passages[k].live >= .5*min(x.passages[a].live, x.passages[b].live) {
			members = append(members, k)
		}
	}
	slices.Sort(members)
	return members
}

func orList(items []string) string {
	switch n := len(items); n {
	case 1:
		return items[0]
	case 2:
		return items[0] + " or " + items[1]
	default:
		return strings.Join(items[:n-1], ", ") + " or " + items[n-1]
	}
}
