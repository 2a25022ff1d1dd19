package conversation

import (
	"context"
	"testing"
)

// alikes is a Matcher that knows which texts are near, and nothing else.
type alikes map[[2]string]float64

func (m alikes) Similarity(_ context.Context, a string, b []string) ([]float64, error) {
	out := make([]float64, len(b))
	for i, x := range b {
		out[i] = max(m[[2]string{a, x}], m[[2]string{x, a}])
	}
	return out, nil
}

// settle gives the clarification p as it was settled by a reply.
func settle(t *testing.T, p Pending, reply string) Pending {
	t.Helper()
	f, err := Fold(context.Background(), p, reply, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := Conversation{State: State{Pending: &p}, Asked: []Pending{p}}
	c.Settle(f)
	if c.Pending != nil || c.Asked[0].Settled != f.Kind {
		t.Fatalf("%q settles as %+v", reply, c)
	}
	return c.Asked[0]
}

func TestRecall(t *testing.T) {
	kite := Pending{ID: "c1", Gate: "post", Question: "What tyre pressure does my Kite need?", Text: "Petrol or hybrid?", Options: opts("Kite 1.2 petrol", "Kite plug-in hybrid")}
	open := Pending{ID: "c2", Gate: "pre", Question: "How much is it?", Text: "What is it about?", Unclear: []string{"it"}}
	m := alikes{{"flat for students", "accommodation for learners"}: 0.8, {"flat for families", "family housing"}: 0.8}
	flats := Pending{ID: "c3", Gate: "post", Question: "What is the rent?", Text: "Which flat?", Options: opts("flat for students", "flat for families")}
	for _, c := range []struct {
		asked  Pending
		reply  string
		now    []Option
		want   string // option recalled; "" if none
		waived bool
	}{
		{kite, "the hybrid", opts("Kite 1.2 petrol", "Kite plug-in hybrid"), "Kite plug-in hybrid", false},
		{kite, "the hybrid", opts("hybrid tank", "petrol tank"), "hybrid tank", false},
		{kite, "the hybrid", opts("hybrid tank", "diesel tank"), "", false}, // another choice, of which one word is the same
		{kite, "the hybrid", opts("monthly", "yearly"), "", false},
		{kite, "no idea", opts("hybrid tank", "petrol tank"), "petrol tank", true},
		{kite, "it doesn't matter", opts("Kite plug-in hybrid", "Kite 1.2 petrol"), "Kite 1.2 petrol", true},
		{kite, "no idea", opts("monthly", "yearly"), "", false},
		{kite, "never mind", opts("hybrid tank", "petrol tank"), "", false}, // nothing is known
		{kite, "both", opts("hybrid tank", "petrol tank"), "", false},
		{open, "the deposit for the Cargo", opts("City", "Cargo"), "Cargo", false}, // said at the other gate
		{open, "the deposit", opts("City", "Cargo"), "", false},
		{flats, "students", opts("family housing", "accommodation for learners"), "accommodation for learners", false}, // in other words
		{flats, "students", opts("family housing", "garage"), "", false},
	} {
		r, ok := Recall(context.Background(), []Pending{settle(t, c.asked, c.reply)}, Pending{Question: "What else?", Text: "Which?", Options: c.now}, m)
		if ok != (c.want != "") || r.Option.Text != c.want || r.Waived != c.waived {
			t.Errorf("%q, then %v: recalled %q (%v, waived %v), want %q (waived %v)", c.reply, c.now, r.Option.Text, ok, r.Waived, c.want, c.waived)
		}
	}
	// What was settled last counts.
	first, second := settle(t, kite, "petrol"), settle(t, kite, "hybrid")
	if r, ok := Recall(context.Background(), []Pending{first, second}, Pending{Options: kite.Options}, nil); !ok || r.Option.Text != "Kite plug-in hybrid" {
		t.Errorf("recalled %+v", r)
	}
}

func TestAmend(t *testing.T) {
	kite := settle(t, Pending{ID: "c1", Gate: "post", Question: "What tyre pressure does my Kite need?", Text: "Petrol or hybrid?", Options: opts("petrol", "hybrid")}, "hybrid")
	de := settle(t, Pending{ID: "c1", Question: "Wie lange habe ich Garantie?", Text: "Akku oder Rahmen?", Options: opts("Akku", "Rahmen")}, "Akku")
	zh := settle(t, Pending{ID: "c1", Question: "押金多久退？", Text: "汽车还是电动车？", Options: opts("汽车", "电动车")}, "汽车")
	for _, c := range []struct {
		asked          Pending
		text, last     string
		want, question string // "" if nothing changes
	}{
		{kite, "actually it's the petrol one", "How big is the tank? (hybrid)", "petrol", "How big is the tank? (petrol)"},
		{kite, "sorry, I meant petrol", "How big is the tank?", "petrol", "How big is the tank? (petrol)"},
		{kite, "I have the petrol one now", "How big is the tank?", "petrol", "How big is the tank? (petrol)"},
		{kite, "actually it's the petrol one, what does it weigh?", "How big is the tank?", "petrol", "what does it weigh?"},
		{kite, "actually it's the hybrid", "How big is the tank?", "", ""},
		{kite, "is the petrol one heavier?", "How big is the tank?", "", ""}, // only asks
		{kite, "actually, when are you open?", "How big is the tank?", "", ""},
		{de, "Moment, eigentlich der Rahmen", "Wie lange habe ich Garantie?", "Rahmen", "Wie lange habe ich Garantie? (Rahmen)"},
		{zh, "说错了，是电动车", "押金多久退？", "电动车", "押金多久退？ (电动车)"},
	} {
		i, f, ok := Amend([]Pending{c.asked}, c.text, c.last)
		got := ""
		if ok && len(f.Chosen) == 1 && i == 0 {
			got = f.Chosen[0].Text
		}
		if got != c.want || f.Question != c.question {
			t.Errorf("%q: changed to %q, question %q; want %q, %q", c.text, got, f.Question, c.want, c.question)
		}
	}
}
