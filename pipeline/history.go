package pipeline

import (
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/askback/askback/conversation"
)

// The default budgets of history, in tokens.
const (
	// DefaultGateHistory is what the gates read of the dialogue.
	DefaultGateHistory = 2000
	// DefaultAnswerHistory is what the generator reads of it.
	DefaultAnswerHistory = 3000
)

// recent gives the end of a dialogue that fits into a budget of tokens, whole
// turns, the oldest dropped first. A last turn that is longer than the budget alone is
// cut: the next question may be about it. What the user settled in clarifications is kept
// whatever was dropped: it stands first, as words of the user.
func recent(history []conversation.Message, asked []conversation.Pending, budget int) []conversation.Message {
	facts := settledFacts(asked)
	left, from := budget, len(history)
	for from > 0 {
		n := from - 1
		if n > 0 && history[n].Role == conversation.Assistant {
			n-- // a turn is a question and its answer
		}
		cost := 0
		for _, m := range history[n:from] {
			cost += tokens(m.Text)
		}
		if left -= cost; left < 0 {
			if from == len(history) { // the last turn
				history = append(slices.Clone(history[:n]), cutTurn(history[n:], budget)...)
				from = n
			}
			break
		}
		from = n
	}
	if from == 0 || len(facts) == 0 {
		return history[from:]
	}
	return append([]conversation.Message{{Role: conversation.User, Text: strings.Join(facts, "\n")}}, history[from:]...)
}

// unbroken are the turns that are part of the dialogue: those that were broken off
// are none.
func unbroken(turns []conversation.Turn) []conversation.Turn {
	return slices.DeleteFunc(slices.Clone(turns), func(t conversation.Turn) bool { return t.Kind == conversation.KindPartial })
}

// gateHistory is what the gates read of the dialogue.
func (t *turn) gateHistory() []conversation.Message {
	return recent(t.history, t.conv.Asked, t.p.parts.GateHistory)
}

// factLimit is how many settled facts are kept when the turns that hold them are
// dropped, the last ones.
const factLimit = 16

// settledFacts are the questions with what the user chose or said, the oldest
// first, each choice once.
func settledFacts(asked []conversation.Pending) []string {
	var facts, seen []string
	for _, a := range slices.Backward(asked) {
		what := strings.Join(a.Chosen, ", ")
		if what == "" && a.Settled == conversation.ReplyDetail {
			what = a.Detail
		}
		if what == "" || slices.Contains(seen, what) || len(facts) == factLimit {
			continue
		}
		seen = append(seen, what)
		facts = append(facts, cutTokens(a.Question, 40)+" ("+cutTokens(what, 40)+")")
	}
	slices.Reverse(facts)
	return facts
}

// tokens estimates how many tokens a model reads a text as: one for about four
// letters of an alphabet, one for each character of Chinese, Japanese, Korean or
// an Indian script, and one for each mark.
func tokens(text string) int {
	n, run := 0, 0
	for _, r := range text {
		switch {
		case r < 0x250 && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			if run%4 == 0 {
				n++
			}
			run++
			continue
		case !unicode.IsSpace(r):
			n++
		}
		run = 0
	}
	return n
}

// cutTurn gives the messages of a turn cut to a budget of tokens. What one of the two
// leaves of its half the other has.
func cutTurn(turn []conversation.Message, budget int) []conversation.Message {
	turn = slices.Clone(turn)
	half, total := budget/len(turn), 0
	for _, m := range turn {
		total += min(tokens(m.Text), half)
	}
	for i := range turn {
		turn[i].Text = cutTokens(turn[i].Text, min(tokens(turn[i].Text), half)+budget-total)
	}
	return turn
}

// cutTokens gives the beginning of a text, of about so many tokens.
func cutTokens(text string, most int) string {
	if tokens(text) <= most {
		return text
	}
	runes := []rune(text)
	cut := string(runes[:sort.Search(len(runes), func(n int) bool { return tokens(string(runes[:n+1])) > most })])
	// Between words, where there are any.
	if i := strings.LastIndexFunc(cut, unicode.IsSpace); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimSpace(cut) + "…"
}
