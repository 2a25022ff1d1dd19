package generation

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ansi matches terminal escape sequences (ECMA-48 CSI, OSC, and two-byte ones).
var ansi = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[@-Z\\\\^_a-z]?|\u009b[0-?]*[ -/]*[@-~]")

// clean makes text safe to show: valid UTF-8 without escape sequences, control
// characters other than newline and tab, and marks that turn the writing
// direction or hide text.
func clean(s string) string {
	if isClean(s) {
		return s
	}
	s = ansi.ReplaceAllString(strings.ToValidUTF8(s, ""), "")
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

func isClean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, hidden)
}

func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == '\u200c' || r == '\u200d': // joiners that writing systems and emoji need
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
}

// quotable gives the words of a passage as a citation shows them: raw, which
// is what stands there, or its longest clean part.
func quotable(raw string) string {
	best, start := "", 0
	for i, r := range raw {
		if !hidden(r) || strings.HasPrefix(raw[i:], "\r\n") {
			continue
		}
		if i-start > len(best) {
			best = raw[start:i]
		}
		_, n := utf8.DecodeRuneInString(raw[i:])
		start = i + n
	}
	if len(raw)-start > len(best) {
		best = raw[start:]
	}
	return strings.TrimSpace(best)
}

const secrets = `\b(?:passwords?|passphrases?|credentials?|pins?|card numbers?|cvv|secrets?|api keys?|log-?ins?|one-time codes?|security codes?)\b`

// commands are the shapes of text that speaks to the assistant and not to the
// reader. A passage is data: such a sentence is never followed, and never
// quoted either, since a reader would take it for the assistant's own words.
var commands = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,40}\b(?:instruction|prompt|guideline|directive|system message|(?:your|previous|prior|above) (?:rule|message))s?\b`),
	regexp.MustCompile(`(?i)\b(?:you are|you're|act as|pretend to be|from now on,? you(?: are| act as)?)(?: now)? (?:an?|the|my|our)\b (?:[\w'-]+ ){0,3}?(?:assistant|chatbot|language model|llm|ai|bot)(?:\W*$|[,.!?:;]|\s(?:who|that|which|with|and|without)\b)|\byou are now\b[^.!?\n]{0,20}\b(?:dan|jailbroken|unrestricted|developer mode)\b`),
	regexp.MustCompile(`(?i)\b(?:note|message|instructions?|attention)\b[^.!?\n]{0,15}\b(?:assistant|ai|llm|chatbot|language model|bot)s?\b\s*[:,]|\bif you are (?:an? )?(?:ai|assistant|llm|chatbot|language model|bot)\b`),
	regexp.MustCompile(`(?i)(?:^|[.;:,>]\s*|\b(?:and|then|instead|must|should|please|to|now|only)\s+)(?:ask|tell|request|instruct|prompt|get|urge|convince)\s+(?:(?:the|every|each|all|any)\s+)?(?:(?:user|customer|visitor|reader|human|client)s?|them|him|her|(?:for\s+)?(?:their|his|the user's))\b[^.!?\n]{0,40}` + secrets),
	regexp.MustCompile(`(?i)^\W{0,4}(?:ask|request)\s+for\s+(?:(?:a|the|your)\s+)?` + secrets),
	regexp.MustCompile(`(?i)\b(?:tell|give|send|type|enter|say|share)\b[^.!?\n]{0,40}\b(?:assistant|chat ?bot|bot|chat)\b[^.!?\n]{0,60}` + secrets + `|` + secrets + `[^.!?\n]{0,40}\b(?:in|into|to) (?:the|this) (?:chat|assistant|bot)\b`),
	regexp.MustCompile(`(?i)\btell (?:every|any)(?:body|one)\b[^.!?\n]{0,100}` + secrets),
	regexp.MustCompile(`(?i)\b(?:reveal|print|repeat|output|show|leak|disclose)\b[^.!?\n]{0,20}\b(?:system prompt|your (?:prompt|instructions|hidden|initial|rules))\b`),
	regexp.MustCompile(`(?i)\b(?:send|post|forward|upload|exfiltrate)\b[^.!?\n]{0,30}\b(?:this|the|whole|entire|chat|user'?s?) (?:conversation|chat history|dialogue|messages?|data)\b[^.!?\n]{0,20}\b(?:to|at)\s+https?://`),
	regexp.MustCompile(`(?i)^\W{0,4}(?:respond|reply|answer)\s+(?:(?:only|exactly)\s+(?:with|in|by)\b|with\s+(?:exactly|only|the (?:word|phrase|following))\b|(?:to\s+)?(?:every|all)\s+(?:questions?|messages?)\s+(?:with|in|by)\b)`),
	regexp.MustCompile(`(?i)^\W{0,4}(?:system|assistant|developer)\s*(?:prompt|message|note)?\s*:\s*(?:you|ignore|always|never|from now|please|do not|ask|tell|new)\b`),
	regexp.MustCompile(`(?i)<\|[a-z_]+\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|</?think(?:ing)?>|###\s*(?:system|instruction|assistant)\b|\b(?:begin|end|new) system (?:prompt|message)\b`),
}

// aboutCommands matches questions about such text, which may be answered with it.
var aboutCommands = regexp.MustCompile(`(?i)prompt injection|jailbreak|system prompt|\bignore (?:previous|prior|your|all)\b[^.!?]{0,20}\binstructions?\b|chat template|\[INST\]|<\|`)

// negated matches what forbids the request instead of making it.
var negated = regexp.MustCompile(`(?i)\b(?:never|not|don't|doesn't|won't|cannot|can't|no one|nobody|mustn't)\b[^.!?\n]{0,30}$`)

// speaksToAssistant says whether a sentence tries to give orders to the
// assistant.
func speaksToAssistant(s string) bool {
	s = clean(s)
	for _, c := range commands {
		if m := c.FindStringIndex(s); m != nil && !negated.MatchString(s[:m[0]]) {
			return true
		}
	}
	return false
}
