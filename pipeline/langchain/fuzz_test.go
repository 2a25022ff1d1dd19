package langchain

import (
	"testing"
	"unicode/utf8"

	"github.com/askback/askback/conversation"
)

// FuzzReader lets the model say anything: a reply is read all the same, and as nothing
// that was not offered.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{`{"kind":"choice","options":["2"]}`, `{"kind":"choice","options":["2","2","9"],"detail":"x"}`, `{"kind":"new_question","question":"When?"}`,
		"```json\n{\"kind\":\"all\"}\n```", `{"kind":5}`, "{", "}{", "\xff{}", `{"question":"\u0000"}`} {
		f.Add(seed)
	}
	p := conversation.Pending{ID: "c1", Question: "How do I claim?", Text: "Employed or self-employed?", Options: []conversation.Option{{ID: "1", Text: "employed"}, {ID: "2", Text: "self-employed"}}}
	f.Fuzz(func(t *testing.T, says string) {
		r, err := NewReader(&script{says: says})
		if err != nil {
			t.Fatal(err)
		}
		got, err := conversation.FoldWith(t.Context(), p, "I write invoices", nil, r)
		if err != nil || got.Kind == "" || got.Question == "" || !utf8.ValidString(got.Question) {
			t.Errorf("%q: %+v, %v", says, got, err)
		}
		for _, o := range append(got.Chosen, got.Excluded...) {
			if o.ID != "1" && o.ID != "2" {
				t.Errorf("%q: chosen is %+v", says, o)
			}
		}
		q, err := r.Standalone(t.Context(), nil, "When is it open?")
		if err == nil && !utf8.ValidString(q) { // what it says is the pipeline's to check
			t.Errorf("%q: the question is %q", says, q)
		}
	})
}
