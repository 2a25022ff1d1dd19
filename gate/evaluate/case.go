package evaluate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/retrieval"
)

// Case is one labelled question. The marks (answer, condition, settled_by,
// unclear) are optional and not needed for measuring.
type Case struct {
	ID       string                 `json:"id"`
	Group    string                 `json:"group"`
	Domain   string                 `json:"domain"`
	Kind     string                 `json:"kind"`
	History  []conversation.Message `json:"history"`
	Question string                 `json:"question"`
	Passages []Passage              `json:"passages"`
	Pre      *int                   `json:"pre"`  // 1: ask at gate 1; nil: leave the case out of gate 1
	Post     *int                   `json:"post"` // 1: ask at gate 2; nil: leave the case out of gate 2
	Options  []conversation.Option  `json:"options"`
}

// Passage is a passage of a case.
type Passage struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// Label gives the case's label at a gate and whether it has one.
func (c Case) Label(s gate.Stage) (ask, ok bool) {
	l := c.Pre
	if s == gate.Post {
		l = c.Post
	}
	return l != nil && *l == 1, l != nil
}

// Request is the case as a clarifier reads it at a gate.
func (c Case) Request(s gate.Stage) gate.Request {
	r := gate.Request{Stage: s, History: c.History, Question: c.Question}
	if s == gate.Post {
		for _, p := range c.Passages {
			r.Passages = append(r.Passages, retrieval.Passage{ID: p.ID, Document: p.ID, Title: p.Title, Text: p.Text})
		}
	}
	return r
}

// Read reads cases, a JSON object a line; blank lines are skipped. All faulty
// lines are named in the error.
func Read(r io.Reader) ([]Case, error) {
	var cases []Case
	var faults []error
	in := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if n == 1 {
			line = strings.TrimPrefix(line, "\uFEFF")
		}
		if strings.TrimSpace(line) != "" {
			c, fault := parse(line)
			if fault != nil {
				faults = append(faults, fmt.Errorf("line %d: %w", n, fault))
			}
			cases = append(cases, c)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading line %d: %w", n, err)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if len(cases) == 0 {
		return nil, errors.New("no cases: the input is empty; each line is one case as a JSON object")
	}
	return cases, nil
}

func parse(line string) (Case, error) {
	var c Case
	if err := json.Unmarshal([]byte(line), &c); err != nil {
		return c, fmt.Errorf("not a case: %w", err)
	}
	if c.ID == "" {
		return c, errors.New(`"id" is missing`)
	}
	if strings.TrimSpace(c.Question) == "" {
		return c, fmt.Errorf(`case %s: "question" is missing`, c.ID)
	}
	for name, l := range map[string]*int{"pre": c.Pre, "post": c.Post} {
		if l != nil && *l != 0 && *l != 1 {
			return c, fmt.Errorf("case %s: %q is %d; want 0, 1 or null", c.ID, name, *l)
		}
	}
	for i, m := range c.History {
		if m.Role != conversation.User && m.Role != conversation.Assistant {
			return c, fmt.Errorf("case %s: history[%d] has the role %q; want user or assistant", c.ID, i, m.Role)
		}
	}
	return c, nil
}
