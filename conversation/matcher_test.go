package conversation

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// meanings is a Matcher that knows the similarities it was given.
type meanings map[string][]float64

func (m meanings) Similarity(_ context.Context, a string, b []string) ([]float64, error) {
	s, ok := m[a]
	if !ok {
		return nil, errors.New("the encoder is gone")
	}
	return s[:min(len(s), len(b))], nil
}

func TestFoldMatcher(t *testing.T) {
	p := Pending{Question: "how do I claim?", Text: "Are you employed or self-employed?", Options: opts("employed", "self-employed")}
	m := meanings{
		"freelancer":     {0.31, 0.62},
		"on a payroll":   {0.55, 0.49}, // near to both: no choice
		"on the moon":    {0.11, 0.04}, // near to none
		"by the hour":    {0.9},        // one figure for two options: broken
		"for three days": {0, 0},
	}
	for reply, want := range map[string]ReplyKind{
		"freelancer":   ReplyChoice,
		"on a payroll": ReplyDetail,
		"on the moon":  ReplyDetail,
		"by the hour":  ReplyDetail,
		"retired":      ReplyDetail, // the Matcher fails: the rules alone
	} {
		got, err := Fold(context.Background(), p, reply, m)
		if err != nil {
			t.Fatal(err)
		}
		if got.Kind != want {
			t.Errorf("%q: %s, want %s", reply, got.Kind, want)
		}
		if want == ReplyChoice && got.Question != "how do I claim? (self-employed; freelancer)" {
			t.Errorf("%q: %q", reply, got.Question)
		}
	}
}

func TestFoldChoice(t *testing.T) {
	p := Pending{ID: "c7", Question: "What is the deposit?", Options: []Option{{ID: "1", Text: "compact cars", Passages: []string{"p1"}}, {ID: "2", Text: "vans"}}}
	got, err := FoldChoice(p, "1")
	if err != nil || got.Kind != ReplyChoice || got.Question != "What is the deposit for compact cars?" || got.Chosen[0].Passages[0] != "p1" || got.Rule != "click" {
		t.Errorf("%+v, %v", got, err)
	}
	for id, want := range map[string]string{"9": `"9"`, "": `""`, "vans": `"2"`} {
		if _, err := FoldChoice(p, id); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "c7") {
			t.Errorf("option %q: error %v, want one that names it, the clarification and what it offers", id, err)
		}
	}
	if _, err := FoldChoice(Pending{ID: "c8"}, "1"); err == nil || !strings.Contains(err.Error(), "in words") {
		t.Errorf("no options: %v", err)
	}
}

// What Fold says itself is in the language of the conversation.
func TestFoldSays(t *testing.T) {
	for _, c := range []struct {
		p           Pending
		reply, says string
	}{
		{Pending{Question: "What is the deposit?", Text: "Which printer: the InkJoy 7 or 9?", Options: opts("InkJoy 7", "InkJoy 9", "Laser")}, "inkjoy", "Which one do you mean: InkJoy 7 or InkJoy 9?"},
		{Pending{Question: "What is the deposit?", Text: "Car or van?", Options: opts("car", "van")}, "", "I could not make out an answer. Car or van?"},
		{Pending{Question: "What is the deposit?", Text: "Car or van?", Options: opts("car", "van")}, "the fourth", "There are only 2 to choose from. Car or van?"},
		{Pending{Question: "What is the deposit?", Text: "Car or van?", Options: opts("car", "van")}, "9", "There are only 2 to choose from. Car or van?"},
		{Pending{Question: "how long does it take?", Text: "What do you mean?", Unclear: []string{"it"}}, "huh?", "I can't tell what “it” refers to. What do you mean?"},
		{Pending{Question: "What is the deposit?", Text: "Car or van?", Options: opts("car", "van")}, "never mind", "All right, I'll leave that question."},
		{Pending{Question: "Wie hoch ist die Kaution?", Text: "Für welches Fahrzeug?", Options: opts("Auto", "Bus")}, "was ist der Unterschied?", "Die Antwort ist hier verschieden: Auto oder Bus. Was trifft zu? Wenn Sie es nicht wissen, sagen Sie es; dann antworte ich mit einer Annahme."},
		{Pending{Question: "Quel est le prix ?", Text: "Pour qui ?", Options: opts("adulte", "enfant")}, "oui", "Lequel voulez-vous dire : adulte ou enfant ?"},
		{Pending{Question: "¿Cuál es la cuota?", Text: "¿Para qué?", Options: opts("gimnasio", "piscina")}, "olvídalo", "De acuerdo, dejo esa pregunta."},
		{Pending{Question: "押金是多少？", Text: "哪种车？", Options: opts("轿车", "面包车")}, "是的", "您指的是哪一个：轿车还是面包车？"},
		{Pending{Question: "जमा राशि कितनी है?", Text: "किसके लिए?", Options: opts("कार", "वैन")}, "रहने दो", "ठीक है, मैं यह सवाल छोड़ देता हूँ।"},
	} {
		got, err := Fold(context.Background(), c.p, c.reply, nil)
		if err != nil || got.Say != c.says || got.Question != c.p.Question {
			t.Errorf("%q to %q\n says %q (%s, %s) %v\n want %q", c.reply, c.p.Text, got.Say, got.Kind, got.Rule, err, c.says)
		}
	}
}

// A second clarification folds onto the question that the first one left.
func TestFoldTwice(t *testing.T) {
	p := Pending{Question: "Can I get my money back?", Text: "Where did you buy it?", Options: opts("in a shop", "on the website")}
	one, _ := Fold(context.Background(), p, "the website, in March", nil)
	p = Pending{Question: one.Question, Text: "Is it still sealed?", Options: opts("sealed", "opened")}
	two, _ := Fold(context.Background(), p, "opened", nil)
	if want := "Can I get my money back? (on the website; in March; opened)"; two.Question != want {
		t.Errorf("%q, want %q", two.Question, want)
	}
	three, _ := Fold(context.Background(), Pending{Question: two.Question, Text: "Which product?"}, "it's a kettle", nil)
	if want := "Can I get my money back? (on the website; in March; opened; a kettle)"; three.Question != want {
		t.Errorf("%q, want %q", three.Question, want)
	}
}
