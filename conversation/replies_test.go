package conversation

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
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
	Part     string    `json:"-"`

	// Alt are other readings that can be defended.
	Alt []struct {
		Kind     ReplyKind `json:"kind"`
		Chosen   []string  `json:"chosen"`
		Question string    `json:"question"`
	} `json:"alt"`
}

func replies(t testing.TB) []replyCase {
	t.Helper()
	names := []string{"testdata/replies.jsonl", "testdata/replies_unseen.jsonl", "testdata/replies_third.jsonl"}
	if *bank != "" {
		names = []string{*bank}
	}
	var cs []replyCase
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			n++
			c := replyCase{Part: "tuned on"}
			if err := json.Unmarshal(s.Bytes(), &c); err != nil {
				t.Fatalf("%s, line %d: %v", name, n, err)
			}
			switch {
			case strings.Contains(name, "unseen"):
				c.Part = "written apart"
			case strings.Contains(name, "third"):
				c.Part = "third"
			case c.Held:
				c.Part = "held out"
			}
			cs = append(cs, c)
		}
	}
	return cs
}

type tally struct{ n, kind, or, chosen, question, lost int }

func (a tally) String() string {
	share := func(n int) float64 { return 100 * float64(n) / float64(a.n) }
	return fmt.Sprintf("%4d replies, right kind %5.1f %% (%5.1f %% as written), right options %5.1f %%, exact question %5.1f %%, question lost %d",
		a.n, share(a.or), share(a.kind), share(a.chosen), share(a.question), a.lost)
}

// right says whether a reply was read as it was written, and whether it was read
// so or in another way that can be defended.
func (c replyCase) right(got Folded) (kind, or, chosen, question bool) {
	ids := []string{}
	for _, o := range got.Chosen {
		ids = append(ids, o.ID)
	}
	kind = got.Kind == c.Kind
	or, chosen, question = kind, kind && slices.Equal(ids, c.Chosen), c.Question == "" || got.Question == c.Question
	for _, a := range c.Alt {
		same := got.Kind == a.Kind
		or, chosen = or || same, chosen || same && slices.Equal(ids, a.Chosen)
		question = question || got.Question == a.Question
	}
	return kind, or, chosen, question
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
	byKind, byPart := map[string]*tally{}, map[string]*tally{}
	var all tally
	var swallowed, taken, plain int
	for _, c := range replies(t) {
		if c.Part != "tuned on" && !*heldOut {
			continue
		}
		got, err := Fold(context.Background(), c.Pending, c.Reply, m)
		if err != nil {
			t.Fatal(err)
		}
		kind, or, chosen, question := c.right(got)
		for _, a := range []*tally{at(byKind, string(c.Kind)), at(byPart, c.Part), &all} {
			a.n++
			a.kind += one(kind)
			a.or += one(or)
			a.chosen += one(chosen)
			a.question += one(question)
			a.lost += one(lost(c.Pending, got))
		}
		if !or || !chosen || !question {
			var ids []string
			for _, o := range got.Chosen {
				ids = append(ids, o.ID)
			}
			t.Logf("%s %q\n  to   %q %q\n  got  %s %v %q (%s)\n  want %s %v %q", c.ID, c.Reply, c.Pending.Question, c.Pending.Text,
				got.Kind, ids, got.Question, got.Rule, c.Kind, c.Chosen, c.Question)
		}
		if c.Kind == ReplyNewQuestion {
			swallowed += one(!or)
		} else {
			plain++
			taken += one(got.Kind == ReplyNewQuestion && !or)
		}
	}
	for _, by := range []map[string]*tally{byKind, byPart} {
		for _, k := range slices.Sorted(maps.Keys(by)) {
			t.Logf("%-18s %s", k, by[k])
		}
	}
	t.Logf("%-18s %s", "all", all)
	t.Logf("topic changes swallowed: %d; answers taken for a topic change: %d of %d", swallowed, taken, plain)

	if all.n < 400 && *heldOut {
		t.Errorf("%d replies, want 400 at least", all.n)
	}
	if float64(all.or) < 0.97*float64(all.n) {
		t.Errorf("right kind for %d of %d replies, want 97 %% at least", all.or, all.n)
	}
	if all.lost > 0 {
		t.Errorf("the original question was lost %d times", all.lost)
	}
	if swallowed > mostSwallowed {
		t.Errorf("%d topic changes were swallowed as answers", swallowed)
	}
	if float64(taken) > 0.01*float64(plain) {
		t.Errorf("%d of %d answers were taken for a topic change, want 1 %% at most", taken, plain)
	}
}

// mostSwallowed are the topic changes of the bank that are taken for an answer:
// "payslip password" and "j'ai changé d'adresse", which do not sound like questions
// and of which no rule knows that they are about something else.
const mostSwallowed = 2

func at(m map[string]*tally, key string) *tally {
	if m[key] == nil {
		m[key] = &tally{}
	}
	return m[key]
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
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
