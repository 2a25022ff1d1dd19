package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
)

// The history keeps to its budget, drops the oldest turns first, and never the last
// one, be it ever so long.
func TestRecent(t *testing.T) {
	dialogue := func(turns int, last ...string) (h []conversation.Message) {
		for n := range turns {
			h = append(h, conversation.Message{Role: conversation.User, Text: fmt.Sprint("question ", n)}, conversation.Message{Role: conversation.Assistant, Text: fmt.Sprint("answer ", n)})
		}
		for i, text := range last {
			h = append(h, conversation.Message{Role: []conversation.Role{conversation.User, conversation.Assistant}[i%2], Text: text})
		}
		return h
	}
	asked := []conversation.Pending{{Question: "What is the deposit?", Chosen: []string{"Cargo"}}}
	long, chinese := strings.Repeat("many words ", 3000), strings.Repeat("很长的文字", 2000)
	for name, c := range map[string]struct {
		history     []conversation.Message
		budget      int
		first, last string // how the first and the last message begin
		messages    int
	}{
		"all of it fits":           {dialogue(3), 1000, "question 0", "answer 2", 6},
		"the oldest go":            {dialogue(100), 60, "What is the deposit? (Cargo)", "answer 99", 0},
		"a long answer at the end": {dialogue(3, "tell me more", long), 100, "What is the deposit? (Cargo)", "many words", 3},
		"a long question":          {dialogue(3, long, "I cannot find that."), 100, "What is the deposit? (Cargo)", "I cannot find that.", 3},
		"both long, no spaces":     {dialogue(3, chinese, chinese), 100, "What is the deposit? (Cargo)", "很长的文字", 3},
		"a long turn alone":        {dialogue(0, long, long), 100, "many words", "many words", 2},
		"nothing":                  {nil, 100, "", "", 0},
	} {
		before := fmt.Sprint(c.history)
		got := recent(c.history, asked, c.budget)
		if len(c.history) == 0 {
			if len(got) != 0 {
				t.Errorf("%s: %q", name, got)
			}
			continue
		}
		total := 0
		for _, m := range got {
			if m.Text == "…" || m.Text == "" {
				t.Errorf("%s: a message has nothing left", name)
			}
			total += tokens(m.Text)
		}
		if most := c.budget + 40; total > most || c.messages != 0 && len(got) != c.messages || !strings.HasPrefix(got[0].Text, c.first) || !strings.HasPrefix(got[len(got)-1].Text, c.last) {
			t.Errorf("%s: %d messages of %d tokens, first %.40q, last %.40q", name, len(got), total, got[0].Text, got[len(got)-1].Text)
		}
		if fmt.Sprint(c.history) != before {
			t.Errorf("%s: the dialogue itself was changed", name)
		}
	}
	if got := cutTokens("一二三四五六七八九十", 5); got != "一二三四五…" {
		t.Errorf("cut to %q", got)
	}
	if got := cutTokens("the quick brown fox jumps", 5); got != "the quick brown…" {
		t.Errorf("cut to %q", got)
	}
}
