package pipeline

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/conversation"
)

// mention is something that the dialogue speaks of: a name, or words of content
// of a question.
type mention struct {
	text  string
	score float64 // the higher, the likelier a pronoun means it
	name  bool
	place bool // "in Fenmouth"
	thing bool // "the" stands before it
	asked bool // in a question
	first bool // it begins a sentence
	after bool // a preposition stands before it
	bound bool // "for" or "in" stands before it: "the deposit for the Nido flat"
	last  bool // the last question ends with it, and names nothing else
}

// How mentions are weighed.
const (
	mentionTurns = 6    // how many turns back they are looked for
	mentionDecay = 0.7  // by turn back
	nameWeight   = 1.2  // a name in a question
	phraseWeight = 1.0  // other words of content in a question
	replyWeight  = 0.55 // a name in an answer
	replyWords   = 60   // how far into an answer
)

// salient gives what a dialogue speaks of, the likeliest to be meant first.
func salient(turns []conversation.Turn) []mention {
	var all []mention
	weight := 1.0
	for i := len(turns) - 1; i >= 0 && len(turns)-i <= mentionTurns; i-- {
		t := turns[i]
		if t.Kind == conversation.KindClarification && i+1 < len(turns) {
			continue
		}
		if _, small := conversation.Smalltalk(t.Text); small {
			continue
		}
		question, root, _ := strings.Cut(t.Question, followingMark)
		question = strings.Replace(question, aboutMark, ", ", 1)
		if root != "" {
			question += " " + strings.TrimSuffix(root, ")")
		}
		found := mentionsOf(question)
		names := 0
		for _, m := range found {
			if m.name {
				names++
			}
		}
		for k, m := range found {
			m.asked = true
			m.last = weight == 1 && m.name && !m.bound && names == 1 && k == len(found)-1
			if m.name {
				m.score = weight * nameWeight
			} else {
				m.score = weight * phraseWeight
			}
			all = addMention(all, m)
		}
		n := 0
		for _, m := range mentionsOf(firstWords(t.Reply, replyWords)) {
			if m.name {
				m.score = weight * replyWeight / (1 + 0.3*float64(n))
				switch {
				case m.first:
					m.score *= 1.6
				case m.after:
					m.score *= 0.6
				}
				all = addMention(all, m)
				n++
			}
		}
		weight *= mentionDecay
	}
	slices.SortStableFunc(all, func(a, b mention) int { return cmp.Compare(b.score, a.score) })
	return all
}

// addMention adds a mention to those that are there: the same thing, or a part of
// its name ("Zappa" of "Frank Zappa"), counts for it.
func addMention(all []mention, m mention) []mention {
	for i := range all {
		a, b := strings.ToLower(all[i].text), strings.ToLower(m.text)
		if a == b || all[i].name && m.name && (holdsWords(a, b) || holdsWords(b, a)) {
			all[i].score += m.score
			all[i].place, all[i].last = all[i].place || m.place, all[i].last || m.last
			all[i].asked = all[i].asked || m.asked
			all[i].thing = all[i].thing || m.thing
			if len(b) > len(a) && strings.Count(b, " ") < 6 && (m.asked || !all[i].asked) {
				all[i].text = m.text
			}
			return all
		}
	}
	return append(all, m)
}

func holdsWords(text, part string) bool { return strings.Contains(" "+text+" ", " "+part+" ") }

func firstWords(text string, n int) string {
	f := strings.Fields(text)
	return strings.Join(f[:min(n, len(f))], " ")
}

// nameJoints are small words that may stand within a name.
var nameJoints = wordList("of the and de la le du des von van der den & for di da del y")

// opensSentence are words that are written large only at the beginning.
var opensSentence = wordList("although once during after before while since when as because despite however upon by both many several some other then later soon also though until if unless like unlike besides additionally furthermore moreover overall thus hence according another next most each every it's he's she's they're yes no okay sure thanks great wow well speaking british")

var afterWords = wordList("in at near to from around on by with for of under over between into during against about")

var placeBefore = wordList("in at near to from around en à in bei nach aus")

// mentionsOf finds names, and the runs of other words of content, in a text.
func mentionsOf(text string) []mention {
	var found []mention
	type token struct {
		text   string
		upper  bool
		starts bool // a sentence
		ends   bool // punctuation follows
	}
	var tokens []token
	starts := true
	for _, f := range strings.Fields(text) {
		core := strings.TrimFunc(f, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '&' })
		if core == "" {
			starts = starts || strings.ContainsAny(f, ".!?:;")
			continue
		}
		core = strings.TrimSuffix(strings.TrimSuffix(core, "'s"), "’s")
		r, _ := utf8.DecodeRuneInString(core)
		opens, closes := !strings.HasPrefix(f, core) && strings.ContainsAny(f[:1], `("[`), strings.ContainsAny(f[len(f)-1:], `.,;:!?)"]`) && !abbreviation.MatchString(f)
		if opens && len(tokens) > 0 {
			tokens[len(tokens)-1].ends = true
		}
		tokens = append(tokens, token{core, unicode.IsUpper(r), starts, closes})
		starts = closes && strings.ContainsAny(f[len(f)-1:], `.!?`)
	}
	for i := 0; i < len(tokens); {
		low := strings.ToLower(tokens[i].text)
		small := aimless[low] || len(wordsOf(low)) == 1 && conversation.IsStopWord(low)
		if tokens[i].upper && !small && !(tokens[i].starts && opensSentence[low]) {
			j := i + 1
			for j < len(tokens) && !tokens[j-1].ends {
				switch {
				case tokens[j].upper && !(tokens[j].starts), isDigits(tokens[j].text) && !isDigits(tokens[j-1].text):
				case nameJoints[strings.ToLower(tokens[j].text)] && j+1 < len(tokens) && !tokens[j].ends && (tokens[j+1].upper || nameJoints[strings.ToLower(tokens[j+1].text)] && j+2 < len(tokens) && tokens[j+2].upper):
				default:
					goto done
				}
				j++
			}
		done:
			var words []string
			for _, t := range tokens[i:j] {
				words = append(words, t.text)
			}
			the := i > 0 && strings.EqualFold(tokens[i-1].text, "the")
			if the && j < len(tokens) && !tokens[j-1].ends && !isDigits(words[len(words)-1]) { // "the Norvik clinic"
				if low := strings.ToLower(tokens[j].text); !tokens[j].upper && !aimless[low] && !conversation.IsStopWord(low) && !asking.MatchString(low) {
					words = append(words, low)
					j++
				}
			}
			m := mention{text: strings.Join(words, " "), name: true, thing: the, bound: boundAt(i, func(k int) string { return tokens[k].text }), first: tokens[i].starts, after: i > 0 && afterWords[strings.ToLower(tokens[i-1].text)], place: i > 0 && placeBefore[strings.ToLower(tokens[i-1].text)]}
			if !(j == i+1 && tokens[i].starts && len(tokens) > 1) || i > 0 && tokens[i-1].ends && !tokens[i].starts {
				found = append(found, m)
			} else if !asking.MatchString(m.text) && !aimless[low] {
				m.name = false // the first word of a sentence
				found = append(found, m)
			}
			i = j
			continue
		}
		if small || asking.MatchString(low) || pronoun.MatchString(low) || utf8.RuneCountInString(low) < 3 {
			i++
			continue
		}
		j := i + 1
		for j < len(tokens) && !tokens[j-1].ends && !tokens[j].upper {
			low := strings.ToLower(tokens[j].text)
			if aimless[low] || conversation.IsStopWord(low) || utf8.RuneCountInString(low) < 3 {
				break
			}
			j++
		}
		var words []string
		for _, t := range tokens[i:j] {
			words = append(words, t.text)
		}
		found = append(found, mention{text: strings.Join(words, " ")})
		i = j
	}
	return found
}

// boundAt says whether a "for" or "in" stands before the words from i on, an article
// aside.
func boundAt(i int, word func(int) string) bool {
	for k := i - 1; k >= 0 && k >= i-2; k-- {
		switch strings.ToLower(word(k)) {
		case "for", "in":
			return true
		case "the", "a", "an", "my", "our":
		default:
			return false
		}
	}
	return false
}

var abbreviation = regexp.MustCompile(`^(\p{Lu}\.)+$|^(?:Dr|Mr|Mrs|Ms|St|Jr|Sr|No)\.$`)

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func wordList(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

var (
	personPronoun = regexp.MustCompile(`(?i)\b(he|she|him|his|hers|her)\b`)
	groupPronoun  = regexp.MustCompile(`(?i)\b(they|them|their|theirs|these|those)\b`)
	thingPronoun  = regexp.MustCompile(`(?i)\b(it|its|this|that)\b`)
	placePronoun  = regexp.MustCompile(`(?i)\b(there|here)\b`)
)

// refer replaces the first pronoun of a question by the name that it means, if
// that is certain enough. Otherwise named is "", and others are the names that it
// may mean, the likeliest first.
func refer(turns []conversation.Turn, question string) (named string, others []string) {
	all := salient(turns)
	plain := expletive.ReplaceAllStringFunc(question, func(s string) string { return strings.Repeat("\x00", len(s)) })
	fits := func(ok func(mention) bool) (found []mention) {
		for _, m := range all {
			if m.name && ok(m) && !holdsWords(strings.ToLower(question), strings.ToLower(m.text)) {
				found = append(found, m)
			}
		}
		return found
	}
	for _, try := range []struct {
		is *regexp.Regexp
		ok func(mention) bool
	}{
		{personPronoun, func(m mention) bool { return !m.place && !m.thing }},
		{groupPronoun, func(m mention) bool { return !m.place }},
		{placePronoun, func(m mention) bool { return m.place }},
		{thingPronoun, func(m mention) bool { return m.last }},
	} {
		at := try.is.FindStringIndex(plain)
		if at == nil {
			continue
		}
		found := fits(try.ok)
		if len(found) == 0 {
			continue
		}
		if best := found[0]; best.asked && (len(found) == 1 || best.score >= sureName*found[1].score) {
			if best.thing {
				best.text = "the " + best.text
			}
			return question[:at[0]] + inForm(question[at[0]:at[1]], best.text, question[at[1]:]) + question[at[1]:], nil
		}
		for _, m := range found[:min(2, len(found))] {
			others = append(others, m.text)
		}
		return "", others
	}
	return "", nil
}

// sureName is by how much likelier than the next a name must be to be put in a
// pronoun's place.
const sureName = 1.3

// inForm puts a name into the place of a pronoun.
func inForm(pronoun, name, after string) string {
	switch strings.ToLower(pronoun) {
	case "his", "their", "its", "hers", "theirs":
		return possessive(name)
	case "her":
		if next := strings.Fields(after); len(next) > 0 && strings.HasPrefix(after, " ") && !conversation.IsStopWord(strings.ToLower(strings.Trim(next[0], ".,;:?!"))) {
			return possessive(name)
		}
	case "there", "here":
		return "in " + name
	}
	return name
}

func possessive(name string) string {
	if strings.HasSuffix(name, "s") {
		return name + "'"
	}
	return name + "'s"
}
