package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/askback/askback/retrieval"
)

// shelf is a retriever that finds its passages in order.
type shelf []retrieval.Passage

func (s shelf) Retrieve(_ context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	return s[:min(q.Limit, len(s))], nil
}

// Copies of the question crowd nothing out, and what answers it under a heading or in
// words that stand in it is no copy.
func TestCrowd(t *testing.T) {
	passage := func(n int, title, text string) retrieval.Passage {
		return retrieval.Passage{ID: fmt.Sprint(n), Document: "a.md", Title: title, Text: text}
	}
	answer := passage(9, "Prices", "Staff pay 4.")
	for name, c := range map[string]struct {
		question, title, text string // of the passages before the answer, which have %d in them
		found                 string
	}{
		"copies":                  {"What is the fee?", "Copy %d", "What is the fee? %d.", "0 1 9"},
		"headings alone":          {"What is the fee?", "What is the fee?", "Copy %d.", "0 1 9"},
		"a page and its sections": {"What is the fee?", "What is the fee? > Group %d", "They pay %d.", "0 1 2 3"},
		"pages with a section":    {"What is the fee?", "Group %d > What is the fee?", "They pay %d.", "0 1 2 3"},
		"words of a search":       {"return a bike", "Return a bike", "To return a bike of group %d, lock it.", "0 1 2 3"},
		"no title":                {"What is the fee?", "", "They pay %d.", "0 1 2 3"},
	} {
		var all shelf
		for n := range 4 {
			all = append(all, passage(n, strings.ReplaceAll(c.title, "%d", fmt.Sprint(n)), strings.ReplaceAll(c.text, "%d", fmt.Sprint(n))))
		}
		now := turn{question: c.question, p: &Pipeline{parts: Parts{Retriever: append(all, answer)}}}
		hits, err := now.search(t.Context(), retrieval.Query{Texts: []string{c.question}, Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.ID)
		}
		if got := strings.Join(ids, " "); got != c.found {
			t.Errorf("%s: found %s, want %s", name, got, c.found)
		}
	}
}
