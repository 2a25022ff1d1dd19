package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
)

// TestGolden replays the conversations of testdata/golden through the
// embedded assistant. A file reads like a chat:
//
//	-- docs/NAME --   files to answer from; without any, the sample is used
//	-- chat --
//	> text            the user's turn; {"text","choice"} for a click; @file:NAME takes the text from an entry
//	< KIND [GATE]     answer, clarification pre|post, no_answer, or error
//	? text            the text is exactly this
//	~ text            the text contains this (letter case does not matter)
//	! text            the text does not contain this
//	o A | B           each option's text, or a title of its passages, contains one of these, each once
//	c text            some citation's title contains this
//	q word word       the question as understood contains these words
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 40 {
		t.Fatalf("%d golden conversations; there should be at least 40", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			replay(t, archive)
		})
	}
}

func replay(t *testing.T, archive *txtar.Archive) {
	entries := map[string]string{}
	var sources sourceFlags
	for _, f := range archive.Files {
		entries[f.Name] = string(f.Data)
		if name, ok := strings.CutPrefix(f.Name, "docs/"); ok {
			if sources.Docs == "" {
				sources.Docs = t.TempDir()
			}
			write(t, filepath.Join(sources.Docs, unescape(name)), []byte(unescape(string(f.Data))))
		}
	}
	a, err := openAssistant(t.Context(), io.Discard, setup{source: sources, gates: gateFlags{MaxAsks: 2, GateTimeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	var last pipeline.Result
	var lastErr error
	for n, line := range strings.Split(strings.TrimRight(entries["chat"], "\n"), "\n") {
		where := fmt.Sprintf("chat line %d: %s", n+1, line)
		mark, rest, _ := strings.Cut(line, " ")
		if mark == "" || mark == "#" {
			continue
		}
		if strings.HasPrefix(mark, ">{") {
			mark, rest = ">", line[1:]
		}
		if mark == ">" {
			last, lastErr = a.pipeline.Ask(t.Context(), userTurn(t, rest, entries))
			continue
		}
		if mark == "<" && rest == "error" {
			if lastErr == nil {
				t.Fatalf("%s: got %s", where, describe(last))
			}
			continue
		}
		if lastErr != nil {
			if mark != "~" {
				t.Fatalf("%s: the turn failed: %v", where, lastErr)
			}
			if !contains(lastErr.Error(), rest) {
				t.Errorf("%s: the error is %v", where, lastErr)
			}
			continue
		}
		if last == nil {
			t.Fatalf("%s: no turn before it", where)
		}
		if fault := check(mark, rest, last.Record()); fault != "" {
			t.Errorf("%s: %s\n%s", where, fault, describe(last))
		}
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// unescape turns \x00 and the like into bytes, where a text has any.
func unescape(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.HasPrefix(s[i:], `\x`) && i+4 <= len(s) {
			if v, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func userTurn(t *testing.T, text string, entries map[string]string) pipeline.Message {
	t.Helper()
	if strings.HasPrefix(text, "{") {
		var m scriptMessage
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return pipeline.Message{Text: m.Text, Choice: m.Choice}
	}
	if name, ok := strings.CutPrefix(text, "@file:"); ok {
		data, there := entries[name]
		if !there {
			t.Fatalf("no entry %q", name)
		}
		return pipeline.Message{Text: unescape(data)}
	}
	return pipeline.Message{Text: text}
}

// check tests one expectation and says what is wrong, or "".
func check(mark, want string, r pipeline.Record) string {
	switch mark {
	case "<":
		kind, gate, _ := strings.Cut(want, " ")
		if r.Kind != conversation.Kind(kind) || kind == "clarification" && gate != "" && string(r.Gate) != gate {
			return fmt.Sprintf("the turn ended as %s %s", r.Kind, r.Gate)
		}
	case "?":
		if r.Text != want {
			return "the text differs"
		}
	case "~":
		if !contains(r.Text, want) {
			return "the text does not contain it"
		}
	case "!":
		if contains(r.Text, want) {
			return "the text contains it"
		}
	case "c":
		if !slices.ContainsFunc(r.Citations, func(c generation.Citation) bool { return contains(c.Title, want) }) {
			return "no citation has it in its title"
		}
	case "q":
		for _, w := range strings.Fields(want) {
			if !contains(r.Question, w) {
				return fmt.Sprintf("the question as understood, %q, lacks %q", r.Question, w)
			}
		}
	case "o":
		return checkOptions(strings.Split(want, "|"), r)
	default:
		return fmt.Sprintf("a line cannot begin with %q", mark)
	}
	return ""
}

func checkOptions(want []string, r pipeline.Record) string {
	if len(want) != len(r.Options) {
		return fmt.Sprintf("%d options, want %d", len(r.Options), len(want))
	}
	titles := map[string]string{}
	for _, p := range r.Trace.Passages {
		titles[p.ID] = p.Title
	}
	left := slices.Clone(r.Options)
	for _, w := range want {
		i := slices.IndexFunc(left, func(o conversation.Option) bool {
			return contains(o.Text, w) || slices.ContainsFunc(o.Passages, func(id string) bool { return contains(titles[id], w) })
		})
		if i < 0 {
			return fmt.Sprintf("no option for %q", strings.TrimSpace(w))
		}
		left = slices.Delete(left, i, i+1)
	}
	return ""
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(strings.TrimSpace(part)))
}

func describe(r pipeline.Result) string {
	record := r.Record()
	var b strings.Builder
	fmt.Fprintf(&b, "    %s %s: %s\n    understood: %s\n", record.Kind, record.Gate, record.Text, record.Question)
	for _, o := range record.Options {
		fmt.Fprintf(&b, "    option %s: %s\n", o.ID, o.Text)
	}
	for _, c := range record.Citations {
		fmt.Fprintf(&b, "    [%d] %s: %s\n", c.N, c.Title, c.Quote)
	}
	printTrace(&b, style{}, record.Trace)
	return b.String()
}
