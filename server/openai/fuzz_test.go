package openai

import (
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server/internal/plain"
)

// FuzzParse holds that a request is either refused, with a status and words, or can
// be answered.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"model":"askback","messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}],"askback":{"choice":"1"}}`,
		`{"n":2,"tool_choice":{"type":"function"},"messages":null,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null},{"role":"assistant","content":"b"}],"askback":{"conversation":"c","choice":"1","key":"k"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, e := parse(data)
		if e != nil {
			if e.status < 400 || e.status > 499 || e.Message == "" || e.Code == nil {
				t.Errorf("%q is refused with %+v", data, e)
			}
			return
		}
		if r.text == "" && r.ask.Choice == "" && !strings.Contains(string(data), "user") {
			t.Errorf("%q gives a message that nobody wrote", data)
		}
		for _, e := range r.dialogue {
			if strings.TrimSpace(e.assistant) == "" {
				t.Errorf("%q gives a turn without a reply", data)
			}
		}
	})
}

var testClarification = pipeline.Record{Kind: conversation.KindClarification, Text: "City or Cargo?", Options: []conversation.Option{{ID: "1", Text: "City"}, {ID: "2", Text: "Cargo"}}}

// FuzzSeed holds that any dialogue can become a conversation, which is then found to
// be that dialogue.
func FuzzSeed(f *testing.F) {
	asks := plain.Text(testClarification)
	f.Add("What is the deposit?", asks, "2", "450")
	f.Add("", "\r\n", "\x00\xff", asks)
	f.Add("a", asks, asks, asks)
	f.Fuzz(func(t *testing.T, u1, a1, u2, a2 string) {
		dialogue := []exchange{{u1, a1}, {u2, a2}}
		store := conversation.NewMemory()
		if err := fork(t.Context(), store, "c", "", nil, 0, dialogue); err != nil {
			t.Fatal(err)
		}
		c, err := store.Load(t.Context(), "c", conversation.All)
		if err != nil {
			t.Fatal(err)
		}
		if n := common(c.Turns, dialogue); n != 2 {
			t.Errorf("%q: only %d turns are known again: %+v", dialogue, n, c.Turns)
		}
		if (c.Pending != nil) != (c.Turns[1].Kind == conversation.KindClarification) {
			t.Errorf("%q: waiting %+v after %s", dialogue, c.Pending, c.Turns[1].Kind)
		}
	})
}
