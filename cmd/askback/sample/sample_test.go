package sample

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
)

// section is a part of a document under a second-level heading.
type section struct{ document, text string }

func sections(t *testing.T) map[string]section {
	t.Helper()
	names, err := fs.Glob(Documents, "*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	all := map[string]section{}
	for _, name := range names {
		b, err := Documents.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if !strings.HasPrefix(text, "---\ntitle: ") || !strings.Contains(text, "\naudience: ") {
			t.Errorf("%s: no title or audience in the front matter", name)
		}
		for _, s := range strings.Split(text, "\n## ")[1:] {
			heading, body, _ := strings.Cut(s, "\n")
			if _, twice := all[heading]; twice {
				t.Errorf("%s: heading %q stands twice in the sample", name, heading)
			}
			if n := len(strings.Fields(body)); n < 40 || n > 150 {
				t.Errorf("%s: %q has %d words, want 40 to 150", name, heading, n)
			}
			all[heading] = section{name, body}
		}
	}
	return all
}

func TestQuestions(t *testing.T) {
	all := sections(t)
	qs, err := Questions()
	if err != nil {
		t.Fatal(err)
	}
	ids, try, gates := map[string]bool{}, 0, map[string]int{}
	for _, q := range qs {
		if ids[q.ID] {
			t.Errorf("%s stands twice", q.ID)
		}
		ids[q.ID] = true
		gates[q.Gate]++
		if q.Try {
			try++
		}
		if asks := q.Expect == conversation.KindClarification; asks != (q.Gate != "") || asks != (q.Post == 1) || (q.Gate == "pre") != (q.Pre == 1) || asks != (q.Clarification != "") {
			t.Errorf("%s: expect %q, gate %q, pre %d, post %d and clarification %q do not go together", q.ID, q.Expect, q.Gate, q.Pre, q.Post, q.Clarification)
		}
		said := q.Question
		for _, m := range q.History {
			said += "\n" + m.Text
		}
		for _, words := range append(q.SettledBy, q.Unclear...) {
			if !strings.Contains(said, words) {
				t.Errorf("%s: %q is not in the dialogue", q.ID, words)
			}
		}
		var evidence string
		for _, h := range q.Headings {
			s, ok := all[h]
			if !ok {
				t.Errorf("%s: no section %q", q.ID, h)
			}
			if !strings.Contains(strings.Join(q.Documents, " "), s.document) {
				t.Errorf("%s: %q is in %s, the question says %v", q.ID, h, s.document, q.Documents)
			}
			evidence += s.text
		}
		for _, w := range q.Words {
			if !strings.Contains(evidence, w) {
				t.Errorf("%s: %q is not in %v", q.ID, w, q.Headings)
			}
		}
		if q.Reply != nil {
			for _, w := range q.Reply.Words {
				if !strings.Contains(all[q.Reply.Heading].text, w) {
					t.Errorf("%s: %q is not in %q", q.ID, w, q.Reply.Heading)
				}
			}
		}
	}
	if len(qs) < 60 || try < 6 || try > 8 || gates["pre"] == 0 || gates["post"] == 0 {
		t.Errorf("%d questions, %d to try, by gate %v", len(qs), try, gates)
	}
}
