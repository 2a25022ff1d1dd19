package generation

import (
	"strings"
	"testing"

	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/retrieval"
)

// Whatever a model says, in whatever pieces, what was sent is the answer.
func FuzzWriter(f *testing.F) {
	for _, s := range []string{
		"ANSWER: The fee is 3 [1]. So [2].", "<think>a[1]</think>ANSWER: b [1]", "a</think>b [1]", "ANSWER: x [1]<think>y", "ANSWER: \x1b[31mx [9] [1, 2]\xff", "NOT_FOUND",
		"ANSWER: a [1] </s>\n\n- b【2】", "ANSWER: a [1][[1]", "answer: [1]", "ANSWER: a [1]</think>b",
	} {
		f.Add(s, uint8(3))
	}
	r := Request{Question: "q", Passages: []retrieval.Passage{{ID: "a", Text: "The fee is 3."}, {ID: "b", Text: "So it is."}}}
	f.Fuzz(func(t *testing.T, said string, size uint8) {
		w := newWriter(r)
		var sent strings.Builder
		for at, n := 0, int(size)+1; at < len(said); at += n {
			sent.WriteString(w.add(said[at:min(len(said), at+n)]))
		}
		delta, a := w.finish()
		sent.WriteString(delta)
		if sent.String() != a.Text {
			t.Fatalf("sent %q, the answer is %q", sent.String(), a.Text)
		}
		if a.Found != (a.Text != "") || a.Found && len(a.Citations) == 0 {
			t.Fatalf("%+v", a)
		}
		for _, c := range a.Citations {
			if c.Quote == "" {
				t.Fatalf("no quote in %+v", a)
			}
		}
		if untrusted.Visible(a.Text) != a.Text {
			t.Fatalf("not clean: %q", a.Text)
		}
	})
}
