// Package plain words results as text alone, for clients that show text and
// nothing else, and reads a clarification worded so back.
package plain

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/pipeline"
)

// How a clarification ends, with options and without. Its end is what it is known
// by when a client sends it back.
const (
	hintOptions = "Reply with a number or in your own words; “just answer” goes on without, “never mind” drops it."
	hintOpen    = "Reply in your own words; “just answer” goes on without, “never mind” drops it."
)

// Text words a result: an answer with its sources below, a clarification with its
// options numbered and what may be replied. It begins with the result's own text.
func Text(r pipeline.Record) string {
	var b strings.Builder
	b.WriteString(r.Text)
	switch r.Kind {
	case conversation.KindAnswer:
		sources(&b, r)
	case conversation.KindClarification:
		options(&b, r)
	}
	return b.String()
}

// sources lists each source once, with the numbers that cite it.
func sources(b *strings.Builder, r pipeline.Record) {
	numbers, order := map[string]string{}, []string{}
	for _, c := range r.Citations {
		source := line(cmp.Or(c.Title, c.Passage))
		if c.Source != "" {
			source += " (" + line(c.Source) + ")"
		}
		if numbers[source] == "" {
			order = append(order, source)
		}
		numbers[source] += fmt.Sprintf("[%d] ", c.N)
	}
	if len(order) > 0 {
		b.WriteString("\n\nSources:")
	}
	for _, source := range order {
		fmt.Fprintf(b, "\n- %s%s", numbers[source], source)
	}
}

// options lists what a clarification offers, each with the titles of what it
// rests on.
func options(b *strings.Builder, r pipeline.Record) {
	if len(r.Options) == 0 {
		b.WriteString("\n\n" + hintOpen)
		return
	}
	titles := map[string]string{}
	for _, p := range r.Trace.Passages {
		titles[p.ID] = p.Title
	}
	b.WriteString("\n")
	for i, o := range r.Options {
		fmt.Fprintf(b, "\n%d. %s", i+1, line(o.Text))
		var from []string
		for _, id := range o.Passages {
			if t := titles[id]; t != "" {
				from = append(from, strings.ReplaceAll(line(t), dash, " - "))
			}
		}
		if len(from) > 0 {
			b.WriteString(dash + strings.Join(from, "; "))
		}
	}
	b.WriteString("\n\n" + hintOptions)
}

// dash stands between an option and what it rests on.
const dash = " — "

// line puts a text on one line, without what is hidden, what a chat template
// takes for its own, and what loads or runs something where it is shown as
// Markdown or HTML: names of files and titles are whatever somebody wrote.
func line(s string) string {
	s = untrusted.Inert(untrusted.WithoutMarks(untrusted.Visible(s)))
	return strings.Join(strings.Fields(s), " ")
}

var numbered = regexp.MustCompile(`^([0-9]{1,2})\. (.+)$`)

// Clarification reads a clarification that Text has worded, as far as text holds
// it: what was asked and the options' texts. What the options rest on is lost.
func Clarification(text string) (asked string, options []conversation.Option, ok bool) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if asked, ok = strings.CutSuffix(text, "\n\n"+hintOpen); ok {
		return strings.TrimSpace(asked), nil, strings.TrimSpace(asked) != ""
	}
	body, ok := strings.CutSuffix(text, "\n\n"+hintOptions)
	if !ok {
		return "", nil, false
	}
	lines := strings.Split(body, "\n")
	at := len(lines)
	for at > 0 && numbered.MatchString(lines[at-1]) {
		at--
	}
	for _, l := range lines[at:] {
		m := numbered.FindStringSubmatch(l)
		what := m[2]
		if i := strings.LastIndex(what, dash); i > 0 {
			what = what[:i]
		}
		if m[1] != fmt.Sprint(len(options)+1) || strings.TrimSpace(what) == "" {
			return "", nil, false
		}
		options = append(options, conversation.Option{ID: m[1], Text: strings.TrimSpace(what), Passages: []string{}})
	}
	asked = strings.TrimSpace(strings.Join(lines[:at], "\n"))
	return asked, options, asked != "" && len(options) > 0
}
