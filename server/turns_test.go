package server_test

import (
	"net/http"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server"
)

// The pieces of an answer, joined, are the stored answer, whatever is in them.
func TestDeltasAreTheAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string
	}{
		{"plain", []string{"The deposit ", "is 200. [1]"}},
		{"lines and quotes", []string{"a\n\n", "\r\nb\u2028\"c\" <d> & \\", "\n: x\ndata: y\n\n"}},
		{"emoji", []string{"👩‍", "🔧 done 🇵", "🇹"}},
		{"a cut rune", []string{"\xe2", "\x82", "\xac 200 \xf0\x9f", "\x91\xa9"}},
		{"bytes that are no text", []string{"caf\xe9 ", "\xff\xfe", " \xe2\x82"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, &writer{pieces: c.pieces}, conversation.NewMemory(), nil)
			s := follow(t, b.do(t.Context(), "POST", "/api/conversations/a/turns", message{"text": "What is the City deposit?", "key": "k"}, "Accept", asStream))
			if s.names != " turn understood retrieved decided delta result end" && s.names != " turn understood decided retrieved decided delta result end" {
				t.Errorf("events%s", s.names)
			}
			kept, err := b.store.Load(t.Context(), "a", 0)
			if err != nil {
				t.Fatal(err)
			}
			if s.result == nil || s.result.ID != "k" || s.text != s.result.Text || s.text != kept.Turns[0].Reply {
				t.Errorf("joined %q, result %q, stored %q", s.text, s.result.Text, kept.Turns[0].Reply)
			}
			var again server.TurnResult
			if r := b.get("POST", "/api/conversations/a/turns", message{"text": "What is the City deposit?", "key": "k"}, &again); r.StatusCode != http.StatusOK || again.Text != s.text || again.Turn != 1 {
				t.Errorf("again %s %+v", r.Status, again)
			}
		})
	}
}
