package conversation

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/retrieval/minilm"
)

var (
	heldOut = flag.Bool("held", true, "replay the held-out replies too")
	bank    = flag.String("bank", "", "replay the replies of this file instead")
)

// replyCase is one line of testdata/replies.jsonl: a clarification, a reply to
// it, and what the reply means. testdata/README.md says what held means.
type replyCase struct {
	ID       string    `json:"id"`
	Pending  Pending   `json:"pending"`
	Reply    string    `json:"reply"`
	Kind     ReplyKind `json:"kind"`
	Chosen   []string  `json:"chosen"`
	Question string    `json:"question"`
	Held     bool      `json:"held"`
}

func replies(t testing.TB) []replyCase {
	t.Helper()
	name := "testdata/replies.jsonl"
	if *bank != "" {
		name = *bank
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cs []replyCase
	for s := bufio.NewScanner(f); s.Scan(); {
		var c replyCase
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatalf("line %d: %v", len(cs)+1, err)
		}
		cs = append(cs, c)
	}
	return cs
}

type tally struct{ n, kind, chosen, question, lost int }

func (a tally) String() string {
	return fmt.Sprintf("%4d replies, right kind %5.1f %%, right options %5.1f %%, exact question %5.1f %%, question lost %d", a.n,
		100*float64(a.kind)/float64(a.n), 100*float64(a.chosen)/float64(a.n), 100*float64(a.question)/float64(a.n), a.lost)
}

// TestReplies replays the bank, by the rules alone and with the embedded encoder
// as the Matcher. Run with -v for the figures by kind.
func TestReplies(t *testing.T) {
	encoder, err := minilm.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("rules", func(t *testing.T) { replay(t, nil) })
	t.Run("encoder", func(t *testing.T) { replay(t, encoder) })
}

func replay(t *testing.T, m Matcher) {
	byKind := map[ReplyKind]*tally{}
	parts := map[bool]*tally{false: {}, true: {}}
	var swallowed, taken, plain int
	for _, c := range replies(t) {
		if c.Held && !*heldOut {
			continue
		}
		got, err := Fold(context.Background(), c.Pending, c.Reply, m)
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, o := range got.Chosen {
			ids = append(ids, o.ID)
		}
		if byKind[c.Kind] == nil {
			byKind[c.Kind] = &tally{}
		}
		for _, a := range []*tally{byKind[c.Kind], parts[c.Held]} {
			a.n++
			if got.Kind == c.Kind {
				a.kind++
			}
			if got.Kind == c.Kind && slices.Equal(ids, c.Chosen) {
				a.chosen++
			}
			if got.Question == c.Question {
				a.question++
			}
			if lost(c.Pending, got) {
				a.lost++
			}
		}
		if got.Kind != c.Kind || got.Question != c.Question && c.Question != "" || !slices.Equal(ids, c.Chosen) {
			t.Logf("%s %q\n  to   %q %q\n  got  %s %v %q (%s)\n  want %s %v %q", c.ID, c.Reply, c.Pending.Question, c.Pending.Text,
				got.Kind, ids, got.Question, got.Rule, c.Kind, c.Chosen, c.Question)
		}
		if c.Kind == ReplyNewQuestion {
			if got.Kind != ReplyNewQuestion {
				swallowed++
			}
		} else {
			plain++
			if got.Kind == ReplyNewQuestion {
				taken++
			}
		}
	}
	var kinds []ReplyKind
	for k := range byKind {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		t.Logf("%-15s %s", k, byKind[k])
	}
	t.Logf("%-15s %s", "tuned on", parts[false])
	if parts[true].n > 0 {
		t.Logf("%-15s %s", "held out", parts[true])
	}
	t.Logf("topic changes swallowed: %d; answers taken for a topic change: %d of %d", swallowed, taken, plain)

	all := tally{parts[false].n + parts[true].n, parts[false].kind + parts[true].kind, 0, 0, parts[false].lost + parts[true].lost}
	if all.n < 400 && *heldOut {
		t.Errorf("%d replies, want 400 at least", all.n)
	}
	if float64(all.kind) < 0.97*float64(all.n) {
		t.Errorf("right kind for %d of %d replies, want 97 %% at least", all.kind, all.n)
	}
	if all.lost > 0 {
		t.Errorf("the original question was lost %d times", all.lost)
	}
	if swallowed > 0 {
		t.Errorf("%d topic changes were swallowed as answers", swallowed)
	}
	if float64(taken) > 0.01*float64(plain) {
		t.Errorf("%d of %d answers were taken for a topic change, want 1 %% at most", taken, plain)
	}
}

// lost says whether the folded question lacks a word of the pending one that
// was not replaced by a better one.
func lost(p Pending, f Folded) bool {
	if f.Kind == ReplyNewQuestion {
		return false
	}
	have := plains(f.Question)
	replaced := plains(strings.Join(p.Unclear, " "))
	for _, w := range plains(p.Question) {
		if !slices.Contains(have, w) && !slices.Contains(replaced, w) && !pronouns[w] {
			if f.Rule == "restated" && !slices.Contains(content([]string{w}), w) {
				continue // the small words may differ
			}
			return true
		}
	}
	return false
}
