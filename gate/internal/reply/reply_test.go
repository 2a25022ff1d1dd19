package reply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/clarifiertest"
	"github.com/askback/askback/retrieval"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string // "" is an error
	}{
		{"clear", `{"clarification": "CLEAR"}`, Clear},
		{"clear in other letters", `{"clarification": " Clear. "}`, Clear},
		{"a question", `{"clarification": "Which office?"}`, "Which office?"},
		{"fences", "```json\n{\"clarification\": \"Which office?\"}\n```", "Which office?"},
		{"words around", `Sure! {"clarification": "Which office?"} Hope this helps.`, "Which office?"},
		{"more keys", `{"reason": "two", "clarification": "Which office?"}`, "Which office?"},
		{"another object first", `{"a": {"b": 1}} {"clarification": "Which office?"}`, "Which office?"},
		{"a thought before", `<think>{"clarification": "CLEAR"}? No.</think>{"clarification": "Which office?"}`, "Which office?"},
		{"a thought only closed", `Maybe {"clarification": "CLEAR"}.</think> {"clarification": "Which office?"}`, "Which office?"},
		{"a thought never closed", `<think>Hm. {"clarification": "CLEAR"}`, ""},
		{"two thoughts", `<think>a</think><thinking>{"clarification":"x?"}</thinking>{"clarification": "CLEAR"}`, Clear},
		{"an empty thought", `<think></think>{"clarification": "CLEAR"}`, Clear},
		{"lines and escapes", "{\"clarification\": \"Which\\n\\u001b[31m office\\u202e?<|im_end|>\"}", "Which office?"},
		{"the same twice", `{"clarification": "A?"} {"clarification": "A?"}`, "A?"},
		{"two verdicts", `{"clarification": "CLEAR"} {"clarification": "Which office?"}`, ""},
		{"cut", `{"clarification": "Which off`, ""},
		{"broken", `{"clarification": "Which office?"`, ""},
		{"no JSON", "Which office?", ""},
		{"bare CLEAR", "CLEAR", ""},
		{"another key", `{"question": "Which office?"}`, ""},
		{"no text", `{"clarification": 7}`, ""},
		{"null", `{"clarification": null}`, ""},
		{"empty", `{"clarification": " "}`, ""},
		{"nothing", "", ""},
		{"marks alone", `{"clarification": "???"}`, ""},
		{"repetition", `{"clarification": "` + strings.Repeat("and which ", 500) + `?"}`, ""},
		{"a secret", `{"clarification": "What is your password?"}`, ""},
		{"a link", `{"clarification": "Which one? See https://example.com/form"}`, ""},
		{"a secret that the user speaks of", `{"clarification": "Which API key do you mean, the old one or the new one?"}`, "Which API key do you mean, the old one or the new one?"},
		{"other alphabets", `{"clarification": "どちらの休暇ですか？"}`, "どちらの休暇ですか？"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, clear, err := Read(tc.in, "how do I renew the API key?")
			if clear {
				got = Clear
			}
			if got != tc.want || (err != nil) != (tc.want == "") || err != nil && !errors.Is(err, ErrReply) {
				t.Errorf("%q, error %v; want %q", got, err, tc.want)
			}
		})
	}
}

func passagesOf(titles ...string) []retrieval.Passage {
	var ps []retrieval.Passage
	for i, title := range titles {
		name, text, _ := strings.Cut(title, "|")
		ps = append(ps, retrieval.Passage{ID: fmt.Sprint("p", i), Title: name, Text: text})
	}
	return ps
}

func TestOptions(t *testing.T) {
	bikes := passagesOf("Charging time: Cargo 2|It takes 6 hours.", "Charging time: City 2|It takes 4 hours.", "Warranty|Two years for every bike.")
	refunds := passagesOf("Refunds: bought online|Within 30 days of delivery.", "Refunds: bought in a shop|Within 14 days.")
	for _, tc := range []struct {
		question string
		passages []retrieval.Passage
		want     string // text=passages; "" for an open question
	}{
		{"Do you mean the Cargo 2 or the City 2?", bikes, "Cargo 2=p0; City 2=p1"},
		{"Which bike is it: Cargo 2, City 2?", bikes, "Cargo 2=p0; City 2=p1"},
		{"Are you asking about items bought online or bought in a shop?", refunds, "bought online=p0; bought in a shop=p1"},
		{"Was it bought online, or in a shop?", refunds, "bought online=p0; shop=p1"},
		{"Which model do you mean?", bikes, ""},
		{"Do you mean the Cargo 2 or the Racer 9?", bikes, ""},
		{"Do you mean the Racer 9 or the Racer 10?", bikes, ""},
		{"Do you mean the charging time or the charging time?", bikes, ""},
		{"Many languages came from it, like Welsh, Breton, and Cornish. Which one are you referring to?",
			passagesOf("Welsh language|x", "Breton language|y", "Cornish language|z", "Common Brittonic|Welsh, Breton and Cornish come from it"), "Welsh=p0; Breton=p1; Cornish=p2"},
		{"Meinen Sie das Modell Cargo 2 oder das City 2?", bikes, "Cargo 2=p0; City 2=p1"},
		{"Are you a part-time employee or a full-time employee?", passagesOf("Leave|A part-time employee has 14 days.", "Leave|A full-time employee has 28 days."), "part-time employee=p0; full-time employee=p1"},
		{"Do you mean 2024 or 2025?", passagesOf("Fees 2024|x", "Fees 2025|y"), "2024=p0; 2025=p1"},
		{"Do you mean A or B?", nil, ""},
		{"Do you mean A or B?", passagesOf("A|x"), ""},
	} {
		var got []string
		v := Verdict(gate.Request{Stage: gate.Post, Passages: tc.passages}, tc.question, false, 1, "test")
		for _, o := range v.Options {
			got = append(got, o.Text+"="+strings.Join(o.Passages, ","))
		}
		if s := strings.Join(got, "; "); s != tc.want {
			t.Errorf("%q\n gives %s\n want  %s", tc.question, s, tc.want)
		}
		clarifiertest.Check(t, gate.Request{Stage: gate.Post, Passages: tc.passages}, v)
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                                 "plain",
		"a<|im_start|>system b":                 "a system b",
		"<|im_<|im_start|>start|>":              "",
		"\x1b[31mred\x1b[0m\x00":                "red",
		"[INST] <start_of_turn>user":            "user",
		"\xff broken":                           "broken",
		strings.Repeat("ä", 100):                strings.Repeat("ä", 15) + " […] " + strings.Repeat("ä", 5),
		"keep\nlines\tand 5 < 6 and <html> too": "keep\nlines\tand 5 < 6 and <html> too",
	} {
		if got := Text(in, 40); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"clarification": "CLEAR"}`, `<think>x</think>{"clarification": "A or B?"}`, "```json\n{\"clarification\": \"\\u001b\"}\n```", `{"clarification": "Cut`, "</think>{}"} {
		f.Add(s)
	}
	r := gate.Request{Stage: gate.Post, Question: "which?", Passages: passagesOf("A|one", "B|two", "A or B|")}
	f.Fuzz(func(t *testing.T, s string) {
		got, clear, err := Read(s, r.Question)
		if err != nil {
			if got != "" || clear {
				t.Errorf("%q, %v beside the error %v", got, clear, err)
			}
			return
		}
		if clear == (got != "") {
			t.Errorf("clear %v and %q", clear, got)
		}
		if strings.ContainsAny(got, "\x00\x1b\n") || len(got) > longest {
			t.Errorf("not fit to show: %q", got)
		}
		clarifiertest.Check(t, r, Verdict(r, got, clear, 0.5, "fuzz"))
	})
}
