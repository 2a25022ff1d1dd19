package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
)

// question is a conversational question with the passages that answer it.
type question struct {
	history []conversation.Message
	text    string
	gold    map[string]bool // ids of passages
}

// set is the questions of one data set.
type set struct {
	name      string
	questions []question
}

// pool is the passages of all sets, each once.
type pool map[string]retrieval.Passage

// add gives the id of a passage with this title and text.
func (p pool) add(title, text string) string {
	title, text = strings.TrimSpace(retrieval.CleanText(title)), strings.TrimSpace(retrieval.CleanText(text))
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(title + "\x00" + text))
	id := hex.EncodeToString(sum[:8])
	p[id] = retrieval.Passage{ID: id, Document: id, Title: title, Source: id, Text: text}
	return id
}

// row is a line of a data set, of the written cases or of the public sets.
type row struct {
	ID            string
	History       []conversation.Message
	Question      string
	Query         string
	Standalone    string
	Label         int
	Pre           *int
	Answerability string
	Note          string
	Docs          []string
	Passages      []struct{ Title, Text, Answer string }
}

func read(path string) ([]row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rows []row
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(rows)+1, err)
		}
		rows = append(rows, r)
	}
	return rows, lines.Err()
}

// written reads the written cases: what answers is marked in their passages. A
// question that gate 1 is to ask about is left out, since no search can be aimed
// by it.
func written(p pool, name string, paths ...string) (set, error) {
	s := set{name: name}
	for _, path := range paths {
		rows, err := read(path)
		if err != nil {
			return s, err
		}
		for _, r := range rows {
			q := question{history: r.History, text: r.Question, gold: map[string]bool{}}
			for _, passage := range r.Passages {
				if id := p.add(passage.Title, passage.Text); passage.Answer != "" {
					q.gold[id] = true
				}
			}
			if len(q.gold) > 0 && r.Pre != nil && *r.Pre == 0 {
				s.questions = append(s.questions, q)
			}
		}
	}
	return s, nil
}

// changed gives the questions of a set that have no dialogue, each after the
// dialogue of another question: the topic is changed there.
func changed(s set) set {
	out := set{name: s.name + ", after a dialogue about something else"}
	for i, q := range s.questions {
		if len(q.history) > 0 {
			continue
		}
		for j := 1; j < len(s.questions); j++ {
			if other := s.questions[(i+j*97)%len(s.questions)]; len(other.history) > 0 {
				q.history = other.history
				break
			}
		}
		out.questions = append(out.questions, q)
	}
	return out
}

// most is the number of questions taken of each public set.
const most = 300

// sample takes that many questions, evenly spread.
func sample(all []question, most int) []question {
	n := len(all)
	if n <= most {
		return all
	}
	some := make([]question, most)
	for i := range some {
		some[i] = all[i*n/most]
	}
	return some
}

// public reads a public set. The passages of a row answer its question if the
// set says so; those of the other sets are there to be told apart from them.
func public(p pool, path string, answers func(row) bool) (set, error) {
	s := set{name: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	rows, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	for _, r := range rows {
		q := question{history: r.History, text: r.Query, gold: map[string]bool{}}
		for _, doc := range r.Docs {
			if id := p.add("", doc); id != "" {
				q.gold[id] = true
			}
		}
		if answers(r) && len(q.gold) > 0 && strings.TrimSpace(q.text) != "" {
			s.questions = append(s.questions, q)
		}
	}
	s.questions = sample(s.questions, most)
	return s, nil
}

// load reads all sets: the written ones of folder, and the public ones of
// another folder if that is given.
func load(folder, publicFolder string) (pool, []set, error) {
	p := pool{}
	file := func(name string) string { return filepath.Join(folder, name+".jsonl") }
	choosing, err := written(p, "written, train and validation", file("train"), file("validation"))
	if err != nil {
		return nil, nil, err
	}
	test, err := written(p, "written, test", file("test"))
	if err != nil {
		return nil, nil, err
	}
	sets := []set{choosing, test}
	if publicFolder == "" {
		return p, sets, nil
	}
	clear := func(r row) bool {
		return r.Label == 0 && r.Answerability != "UNANSWERABLE" && r.Note != "history follows the question"
	}
	for name, answers := range map[string]func(row) bool{
		"mtragun_dev":  clear,
		"pacific_part": clear,
		"abg_coqa_val": clear,
		// These mark no passage as the answer.
		"or_sharc_dev": func(row) bool { return false },
		"claqua_dev":   func(row) bool { return false },
		"ramdocs_part": func(row) bool { return false },
	} {
		s, err := public(p, filepath.Join(publicFolder, name+".jsonl"), answers)
		if err != nil {
			return nil, nil, err
		}
		if len(s.questions) > 0 {
			sets = append(sets, s)
		}
	}
	slices.SortStableFunc(sets[2:], func(a, b set) int { return strings.Compare(a.name, b.name) })
	return p, sets, nil
}
