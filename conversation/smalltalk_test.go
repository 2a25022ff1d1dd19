package conversation

import (
	"strings"
	"testing"
)

func TestSmalltalk(t *testing.T) {
	for text, want := range map[string]string{
		"Hi":                            "Hello!",
		"hello!!":                       "Hello!",
		"Good morning 🙂":                "Hello!",
		"hi there, how are you?":        "Hello!",
		"Hi. Who are you?":              "I am an assistant",
		"what can you do":               "I am an assistant",
		"are you a robot?":              "I am an assistant",
		"thx":                           "You're welcome.",
		"ok, thanks a lot! bye":         "Goodbye!",
		"Great, thank you very much.":   "You're welcome.",
		"Goodbye":                       "Goodbye!",
		"ok":                            "All right.",
		"I see.":                        "All right.",
		"Guten Tag":                     "Hallo!",
		"Grüß Gott!":                    "Hallo!",
		"Dankeschön":                    "Gern geschehen.",
		"Vielen Dank, tschüss":          "Auf Wiedersehen!",
		"Was kannst du?":                "Ich bin ein Assistent",
		"Bonjour":                       "Bonjour",
		"Merci beaucoup !":              "Je vous en prie.",
		"À bientôt":                     "Au revoir",
		"qui êtes-vous ?":               "Je suis un assistant",
		"¡Hola! ¿Qué tal?":              "¡Hola!",
		"muchas gracias":                "De nada.",
		"adiós":                         "¡Hasta luego!",
		"¿Quién eres?":                  "Soy un asistente",
		"你好":                            "您好",
		"谢谢！":                           "不客气",
		"再见":                            "再见",
		"你能做什么？":                        "我是一个助手",
		"नमस्ते":                        "नमस्ते",
		"बहुत धन्यवाद":                  "आपका स्वागत है",
		"आप कौन हैं?":                   "मैं एक सहायक",
		"फिर मिलेंगे":                   "फिर मिलेंगे",
		"hi, what is the deposit?":      "",
		"thanks, and the van?":          "",
		"hello world program in Go":     "",
		"who are you open for":          "",
		"what can you do about mould":   "",
		"good morning shift pay":        "",
		"help with my invoice":          "",
		"Danke, und was kostet das?":    "",
		"merci de m'envoyer la facture": "",
		"hola, ¿dónde está?":            "",
		"你好，押金是多少？":                     "",
		"नमस्ते, फीस कितनी है?": "",
		"deposit":                  "",
		"later today":              "",
		"":                         "",
		"   ":                      "",
		"👍":                        "",
		strings.Repeat("hi ", 500): "",
	} {
		reply, ok := Smalltalk(text)
		if ok != (want != "") || !strings.HasPrefix(reply, want) {
			t.Errorf("%.60q: %q, %v, want %q", text, reply, ok, want)
		}
	}
}

func TestRepeats(t *testing.T) {
	car := Option{ID: "1", Text: "Car", Passages: []string{"p1"}}
	van := Option{ID: "2", Text: "van", Passages: []string{"p2"}}
	asked := []Pending{
		{Question: "What is the deposit?", Text: "Is it for a car or a van?", Options: []Option{car, van}},
		{Question: "how long does it take?", Text: "What do you mean by “it”?"},
	}
	for _, c := range []struct {
		name    string
		text    string
		options []Option
		want    bool
	}{
		{"the same text", "is it for a car, or a van", nil, true},
		{"the same open question", "What do you mean by \"it\"?", nil, true},
		{"the same options in another order", "Which vehicle?", []Option{{Text: "Van"}, {Text: "car"}}, true},
		{"the same passages by other names", "Which vehicle?", []Option{{Text: "small", Passages: []string{"p2"}}, {Text: "big", Passages: []string{"p1"}}}, true},
		{"another question", "For which month?", nil, false},
		{"one option more", "Which vehicle?", []Option{car, van, {Text: "truck", Passages: []string{"p3"}}}, false},
		{"other passages, another name", "Which vehicle?", []Option{car, {Text: "truck", Passages: []string{"p3"}}}, false},
		{"the same options about other passages", "Which vehicle?", []Option{{Text: "car", Passages: []string{"p7"}}, {Text: "van", Passages: []string{"p8"}}}, false},
		{"nothing", "", nil, false},
	} {
		if got := Repeats(asked, c.text, c.options); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	taken := asked[:1:1]
	if taken[0].Settled = ReplyCancel; !Repeats(taken, taken[0].Text, taken[0].Options) {
		t.Error("what was shown before a question was taken back may be shown again")
	}
	if Repeats(nil, "Is it for a car or a van?", []Option{car, van}) {
		t.Error("nothing was asked yet")
	}
}
