package pipeline

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
)

var rewriteFiles = flag.String("rewrites", "", "JSONL files of dialogues with questions rewritten by people, separated by commas, to measure follow-ups on")

// rewriteCase is a follow-up with the standalone question that a person made of
// it.
type rewriteCase struct {
	ID         string                 `json:"id"`
	History    []conversation.Message `json:"history"`
	Query      string                 `json:"query"`
	Standalone string                 `json:"standalone"`
}

func (c rewriteCase) turns() []conversation.Turn {
	var ts []conversation.Turn
	for _, m := range c.History {
		if m.Role == conversation.User || len(ts) == 0 {
			understood, _, _ := standalone(ts, m.Text) // as in a conversation
			ts = append(ts, conversation.Turn{Number: len(ts) + 1, Text: m.Text, Question: understood, Kind: conversation.KindAnswer})
		}
		if m.Role != conversation.User {
			ts[len(ts)-1].Reply = m.Text
		}
	}
	return ts
}

// figures of one way to make a question stand alone: how many of the words of
// content that the person added it holds, how often all of them, and token F1
// with the person's question.
type figures struct{ n, needed, all, f1 float64 }

func (f *figures) add(ours string, c rewriteCase) {
	words := func(s string) []string { return wordsOf(s) }
	var need []string
	query, got, want := words(c.Query), words(ours), words(c.Standalone)
	for _, w := range want {
		if !slices.Contains(query, w) && !conversation.IsStopWord(w) && !slices.Contains(need, w) {
			need = append(need, w)
		}
	}
	have := 0.0
	for _, w := range need {
		if slices.Contains(got, w) {
			have++
		}
	}
	f.n++
	if len(need) == 0 {
		f.needed++
		f.all++
	} else {
		f.needed += have / float64(len(need))
		if have == float64(len(need)) {
			f.all++
		}
	}
	left := slices.Clone(want)
	common := 0.0
	for _, w := range got {
		if i := slices.Index(left, w); i >= 0 {
			left = slices.Delete(left, i, i+1)
			common++
		}
	}
	if common > 0 {
		p, r := common/float64(len(got)), common/float64(len(want))
		f.f1 += 2 * p * r / (p + r)
	}
}

func (f figures) log(t *testing.T, name string) {
	t.Logf("  %-22s needed words %5.1f %%, all of them %5.1f %%, token F1 %.3f", name, 100*f.needed/f.n, 100*f.all/f.n, f.f1/f.n)
}

// TestRewrites measures how follow-ups are made to stand alone against people's
// rewrites: of those in testdata, or of the files of -rewrites. Beside ours stand
// the question left as it is and the question joined to the one before.
func TestRewrites(t *testing.T) {
	files := []string{"testdata/rewrites.jsonl"}
	if *rewriteFiles != "" {
		files = strings.Split(*rewriteFiles, ",")
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var alone, joined, ours, searched figures
		var whole, left float64
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<24)
		for s.Scan() {
			var c rewriteCase
			if err := json.Unmarshal(s.Bytes(), &c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(c.History) == 0 {
				continue
			}
			turns := c.turns()
			understood, queries, _ := standalone(turns, c.Query)
			if strings.EqualFold(c.Query, c.Standalone) { // it stands alone
				if whole++; understood == c.Query {
					left++
				}
				continue
			}
			alone.add(c.Query, c)
			joined.add(turns[len(turns)-1].Text+" "+c.Query, c)
			ours.add(understood, c)
			searched.add(strings.Join(queries, " ")+" "+dialogueContext(turns, c.Query), c)
			if *rewriteFiles == "" || os.Getenv("SHOW") != "" && int(ours.n)%37 == 0 {
				t.Logf("%s: %q\n  ours   %q\n  person %q", c.ID, c.Query, understood, c.Standalone)
			}
		}
		t.Logf("%s: %.0f follow-ups", filepath.Base(name), ours.n)
		alone.log(t, "question only")
		joined.log(t, "last question joined")
		ours.log(t, "ours")
		searched.log(t, "all that is searched")
		if whole > 0 {
			t.Logf("  of %.0f that people left as they are, we leave %.1f %%", whole, 100*left/whole)
		}
		if *rewriteFiles == "" && (ours.needed < 0.8*ours.n || ours.f1/ours.n < joined.f1/joined.n) {
			t.Errorf("%s: follow-ups are made to stand alone worse than they were", name)
		}
	}
}
