package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// sound checks what must hold for every reply, whatever it is.
func sound(t *testing.T, p Pending, reply string, f Folded) {
	t.Helper()
	if !utf8.ValidString(f.Question) || !utf8.ValidString(f.Say) {
		t.Fatalf("%.80q to %.80q gives invalid UTF-8: %+v", reply, p.Question, f)
	}
	if f.Rule == "" {
		t.Fatalf("%.80q was folded by no rule", reply)
	}
	if says := f.Kind == ReplyExplain || f.Kind == ReplyUnclear || f.Kind == ReplyCancel; says != (f.Say != "") {
		t.Fatalf("%s says %q", f.Kind, f.Say)
	}
	if f.Assume != (f.Kind == ReplyJustAnswer || f.Kind == ReplyDontKnow) {
		t.Fatalf("%s with Assume %v", f.Kind, f.Assume)
	}
	n := len(p.Options)
	switch f.Kind {
	case ReplyNewQuestion:
		if key(f.Question) != key(reply) {
			t.Fatalf("new question %.80q is not the reply %.80q", f.Question, reply)
		}
	case ReplyChoice:
		if len(f.Chosen) != 1 {
			t.Fatalf("a choice of %d", len(f.Chosen))
		}
	case ReplySeveral:
		if len(f.Chosen) < 2 || len(f.Chosen) >= n {
			t.Fatalf("several: %d of %d", len(f.Chosen), n)
		}
	case ReplyAll:
		if len(f.Chosen) != n || n < 2 {
			t.Fatalf("all: %d of %d", len(f.Chosen), n)
		}
	case ReplyNone:
		if len(f.Excluded) == 0 {
			t.Fatal("none, and nothing is excluded")
		}
	case ReplyDetail, ReplyJustAnswer, ReplyDontKnow, ReplyExplain, ReplyCancel, ReplyUnclear:
	default:
		t.Fatalf("unknown kind %q", f.Kind)
	}
	for _, o := range slices.Concat(f.Chosen, f.Excluded) {
		if !slices.ContainsFunc(p.Options, func(q Option) bool { return q.ID == o.ID }) {
			t.Fatalf("option %q is none of the clarification's", o.ID)
		}
	}
	q := Pending{Question: valid(p.Question), Unclear: p.Unclear}
	if Lost(q, f) {
		t.Fatalf("%.80q to %.80q loses the question: %.200q (%s)", reply, p.Question, f.Question, f.Rule)
	}
	if most := len(p.Question) + len(p.Text) + 5*(detailRunes*4+len(optionsText(p))) + 100; f.Kind != ReplyNewQuestion && len(f.Question) > most {
		t.Fatalf("a question of %d bytes grew to %d", len(p.Question), len(f.Question))
	}
}

func optionsText(p Pending) string {
	var s string
	for _, o := range p.Options {
		s += o.Text + ", "
	}
	return s
}

func FuzzFold(f *testing.F) {
	for i, c := range Replies(f) {
		if i%7 == 0 {
			p, _ := json.Marshal(c.Pending)
			f.Add(p, c.Reply)
		}
	}
	for _, reply := range []string{"", " ", "?", "1️⃣", "👍🏽", "\x00", "\xff\xfe", "a", "and", "1 1 1", "not", "(((", "not not the first and the last or 3", "१", "第", "前", "最", strings.Repeat("no ", 50)} {
		f.Add([]byte(`{"question":"is it?","text":"what?","options":[{"id":"1","text":"a"},{"id":"2","text":"b"}],"unclear":["it"],"gate":"pre"}`), reply)
		f.Add([]byte(`{"question":"","text":""}`), reply)
	}
	f.Add([]byte(`{"options":[{},{"id":"0"}]}`), "0")
	f.Add([]byte(`{}`), "Neither!00")
	f.Fuzz(func(t *testing.T, pending []byte, reply string) {
		var p Pending
		if json.Unmarshal(pending, &p) != nil || len(pending) > 4000 {
			return
		}
		ids := map[string]bool{}
		for _, o := range p.Options {
			if ids[o.ID] {
				return
			}
			ids[o.ID] = true
		}
		got, err := Fold(context.Background(), p, reply, nil)
		if err != nil {
			t.Fatal(err)
		}
		sound(t, p, reply, got)
	})
}

func TestFoldHugeReplies(t *testing.T) {
	p := Pending{Question: "What is the deposit?", Text: "Car or van?", Options: opts("car", "van")}
	for name, reply := range map[string]string{
		"a word":      strings.Repeat("x", 1<<20),
		"words":       strings.Repeat("my van is old and ", 1<<16),
		"commas":      strings.Repeat(",", 1<<20),
		"parts":       strings.Repeat("a,", 1<<19),
		"no spaces":   strings.Repeat("押金", 1<<18),
		"marks":       "e" + strings.Repeat("\u0301", 1<<19),
		"emoji":       strings.Repeat("😀", 1<<18),
		"zero bytes":  strings.Repeat("\x00", 1<<20),
		"broken":      strings.Repeat("\xff", 1<<20),
		"a question":  "How do I cancel my order? " + strings.Repeat("It is number 12. ", 1<<16),
		"many spaces": strings.Repeat(" ", 1<<20) + "van",
	} {
		start := time.Now()
		got, err := Fold(context.Background(), p, reply, nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		sound(t, p, reply, got)
		if name == "many spaces" && got.Kind != ReplyChoice {
			t.Errorf("%s: %s", name, got.Kind)
		}
	}
}

func TestFoldEmoji(t *testing.T) {
	p := Pending{Question: "What is the deposit?", Text: "Car or van?", Options: opts("car", "van", "🏍")}
	for reply, want := range map[string]string{"1️⃣": "car", "２": "van", "🏍": "🏍", "van 🚐": "van", "🚐 second!!": "van"} {
		got, _ := Fold(context.Background(), p, reply, nil)
		if got.Kind != ReplyChoice || got.Chosen[0].Text != want {
			t.Errorf("%q: %s %v, want %s", reply, got.Kind, got.Chosen, want)
		}
	}
	one := Pending{Question: "When does it start?", Text: "Do you mean the concert?", Options: opts("the concert")}
	if got, _ := Fold(context.Background(), one, "👍🏽", nil); got.Kind != ReplyChoice {
		t.Errorf("thumbs up to one option: %s", got.Kind)
	}
	if got, _ := Fold(context.Background(), one, "👎", nil); got.Kind != ReplyNone {
		t.Errorf("thumbs down to one option: %s", got.Kind)
	}
}

func TestFoldEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fold(ctx, Pending{Question: "a?"}, "b", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
