package pipeline

import (
	"testing"

	"github.com/askback/askback/conversation"
)

func TestStandalone(t *testing.T) {
	for _, tc := range []struct{ before, question, understood string }{
		{"", "and for contractors?", "and for contractors?"},
		{"What is the hotel limit for employees?", "and for contractors?", "What is the hotel limit for contractors?"},
		{"What is the hotel limit for employees?", "What about for contractors in Norway?", "What is the hotel limit for contractors in Norway?"},
		{"What is the deposit in Ostby for a week?", "and in Fenmouth?", "What is the deposit in Fenmouth for a week?"},
		{"What is the rental deposit for City 2 and Cargo 2?", "and for the City 2?", "What is the rental deposit for the City 2?"}, // not both
		{"When are the shops in Ostby, Fenmouth and Larkwheel Yard open?", "and in Ostby?", "When are the shops in Ostby open?"},
		{"How do I return an order?", "how long does it take?", "how long does it take? (following: How do I return an order?)"},
		{"How do I return an order?", "how long does it take to charge the battery?", "how long does it take to charge the battery?"},
		{"How do I return an order?", "What is the range of the City 2?", "What is the range of the City 2?"},
		{"How do I return an order?", "Is it possible to pay by card?", "Is it possible to pay by card?"},
		{"How do I return an order?", "What does that error code mean?", "What does that error code mean?"},
		{"How far does the City 2 go?", "the Cargo 2?", "How far does the Cargo 2 go?"},
		{"How far does the City 2 go?", "And what is the rental deposit?", "And what is the rental deposit?"},
		{"mileage rate?", "weekly price cargo 2", "weekly price cargo 2"},
		{"How long is my notice period?", "I'm past probation", "I'm past probation (following: How long is my notice period?)"},
		{"How many days of leave do I have?", "I'm an intern", "I'm an intern (following: How many days of leave do I have?)"},
		{"How many days of leave do I have?", "Intern", "Intern (following: How many days of leave do I have?)"},
		{"How many seats has the room Cedar?", "and Elm?", "How many seats has the room Elm?"},
		{"What does ERR-5172 mean?", "and err-5171?", "What does err-5171 mean?"},
		{"What does ERR-5172 mean?", "ERR-5171", "What does ERR-5171 mean?"},
		{"What does ERR-5172 mean?", "and 5171?", "What does ERR-5171 mean?"}, // never the neighbour
		{"What does ERR-5172 mean?", "what about the code 5173", "What does ERR-5173 mean?"},
		{"Was bedeutet ERR-5172?", "und 5171?", "Was bedeutet ERR-5171?"},
		{"What does ERR-5172 mean?", "and 51710?", "and 51710? (following: What does ERR-5172 mean?)"},
		{"What does ERR-5172 mean?", "and after 5171 miles?", "and after 5171 miles? (following: What does ERR-5172 mean?)"},
		{"When are you open?", "and 5171?", "and 5171? (following: When are you open?)"},
		{"When are you open?", "ERR-5171", "ERR-5171"},
		{"What is the deposit for a Cargo 2?", "and for a City 2?", "What is the deposit for a City 2?"},
		{"What does ERR-5172 mean?", "and what is it about ERR-5173?", "and what is it about ERR-5173?"},
		{"What does ERR-5172 mean?", "And how do I clear ERR-5173 on the display?", "And how do I clear ERR-5173 on the display?"},
		{"What does ERR-5171 mean?", "what should I do?", "what should I do? (following: What does ERR-5171 mean?)"},
		{"a? (following: b?)", "and it?", "and it? (following: b?)"},
		{"Who is Maren Dahl?", "Where does she work?", "Where does Maren Dahl work?"},
	} {
		var turns []conversation.Turn
		if tc.before != "" {
			turns = []conversation.Turn{{Question: tc.before, Text: tc.before, Kind: conversation.KindAnswer}}
		}
		got, queries, _ := standalone(turns, tc.question)
		if got != tc.understood {
			t.Errorf("%q after %q: understood as %q, want %q", tc.question, tc.before, got, tc.understood)
		}
		if len(queries) == 0 {
			t.Errorf("%q: nothing to search for", tc.question)
		}
	}
}

func TestDialogueContext(t *testing.T) {
	said := func(texts ...string) (turns []conversation.Turn) {
		for _, text := range texts {
			turns = append(turns, conversation.Turn{Text: text})
		}
		return turns
	}
	for _, test := range []struct {
		turns []conversation.Turn
		want  string
	}{
		{nil, ""},
		{said("hi"), ""},
		{said("hi", "What is the range?", "thanks"), "What is the range? and the weight?"},
		{said("one", "two", "three", "four"), "two three four and the weight?"},
	} {
		if got := dialogueContext(test.turns, "and the weight?"); got != test.want {
			t.Errorf("after %d turns: %q, want %q", len(test.turns), got, test.want)
		}
	}
}

// A quantity after a name is no part of it.
func TestNamesEndAtTheirNumber(t *testing.T) {
	for text, want := range map[string]string{
		"Permitted total weight: City 2 130 kg": "City 2",
		"The range of the Cargo 2 is 110 km.":   "Cargo 2",
		"It is the Boeing 747 400 with seats":   "Boeing 747",
	} {
		last := ""
		for _, m := range mentionsOf(text) {
			if m.name {
				last = m.text
			}
		}
		if last != want {
			t.Errorf("%q: the last name is %q, want %q", text, last, want)
		}
	}
}

// A turn that was broken off is no part of the dialogue that a question leans on.
func TestNothingLeansOnABrokenTurn(t *testing.T) {
	said := turn{p: &Pipeline{}, conv: &conversation.Conversation{Turns: []conversation.Turn{
		{Text: "What is the deposit?", Question: "What is the deposit?", Kind: conversation.KindAnswer},
		{Text: "When is Ostby open?", Question: "When is Ostby open?", Kind: conversation.KindPartial},
	}}}
	if got, _, _ := said.contextual("how long does it take?"); got != "how long does it take? (following: What is the deposit?)" {
		t.Errorf("understood as %q", got)
	}
}
