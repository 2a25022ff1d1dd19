package conversation

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var bank = flag.String("bank", "", "replay the replies of this file instead")

// ReplyCase is one line of testdata/replies.jsonl: a clarification, a reply to
// it, and what the reply means. testdata/README.md says what held means.
type ReplyCase struct {
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

// Replies reads the bank.
func Replies(t testing.TB) []ReplyCase {
	t.Helper()
	names := []string{"testdata/replies.jsonl", "testdata/replies_unseen.jsonl", "testdata/replies_third.jsonl"}
	if *bank != "" {
		names = []string{*bank}
	}
	var cs []ReplyCase
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			n++
			c := ReplyCase{Part: "tuned on"}
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

// Lost says whether the folded question lacks a word of the pending one that
// was not replaced by a better one.
func Lost(p Pending, f Folded) bool {
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
