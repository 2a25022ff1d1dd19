package generation

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // lines; headings begin with #
	}{
		{"two sentences", "The fee is 30. It is paid at the desk.", []string{"The fee is 30.", "It is paid at the desk."}},
		{"abbreviations", "Ask Dr. Lund, e.g. by phone, approx. at No. 5. She knows.", []string{"Ask Dr. Lund, e.g. by phone, approx. at No. 5.", "She knows."}},
		{"no is also a word", "Is it free? No. It costs 3.", []string{"Is it free?", "No.", "It costs 3."}},
		{"initials", "The arch is by J. R. Hask. It stands.", []string{"The arch is by J. R. Hask.", "It stands."}},
		{"decimals and versions", "Take 2.5 bar. Version 2.4.1 is old. See https://a.example/x.y?z=1. Done.",
			[]string{"Take 2.5 bar.", "Version 2.4.1 is old.", "See https://a.example/x.y?z=1.", "Done."}},
		{"clock", "Open from 9 a.m. to 5 p.m. on weekdays. Closed on Sunday.", []string{"Open from 9 a.m. to 5 p.m. on weekdays.", "Closed on Sunday."}},
		{"wrapped lines", "The block on your card is lifted within five working\ndays after the return of the car. Bring it\nback full.",
			[]string{"The block on your card is lifted within five working days after the return of the car.", "Bring it back full."}},
		{"records", "Name: Ana\nPrice: 3\nColour: red", []string{"Name: Ana", "Price: 3", "Colour: red"}},
		{"Windows line ends", "One.\r\nTwo.\r\n", []string{"One.", "Two."}},
		{"list", "Bring these:\n- your passport\n- two photos, not older\n  than a year\n\nCome early.",
			[]string{"Bring these:", "your passport", "two photos, not older than a year", "Come early."}},
		{"steps", "To reset:\n1. Hold the button.\n2) Wait 5 s. Then let go.", []string{"To reset:", "Hold the button.", "Wait 5 s. Then let go."}},
		{"table", "| Class | Deposit | Excess |\n|---|---:|---|\n| Economy | 300 | 1,200 |\n| **Van** |  | 900 |",
			[]string{"#| Class | Deposit | Excess |", "Economy: Deposit 300, Excess 1,200", "Van: Excess 900"}},
		{"headings", "# Fees\nThe fee is 30.", []string{"## Fees", "The fee is 30."}},
		{"code", "Run this:\n```\ngo test ./...\nls\n```\nDone.", []string{"Run this:", "```\ngo test ./...\nls\n```", "Done."}},
		{"Chinese", "押金为300元。还车后五天内退还。可以吗？可以！", []string{"押金为300元。", "还车后五天内退还。", "可以吗？", "可以！"}},
		{"Hindi", "शुल्क ३०० है। यह पाँच दिनों में लौटाया जाता है।", []string{"शुल्क ३०० है।", "यह पाँच दिनों में लौटाया जाता है।"}},
		{"marks", "The **fee** is [30 euros](https://a.example/fees).", []string{"The fee is 30 euros."}},
		{"escapes", "The \x1b[31mfee\x1b[0m is 30.\x00", []string{"The fee is 30."}},
		{"broken UTF-8", "The caf\xe9 opens. At 9.", []string{"The caf opens.", "At 9."}},
		{"empty", " \n\t\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, u := range split(tt.text) {
				line := u.line
				if u.kind == heading {
					line = "#" + line
				}
				got = append(got, line)
			}
			if strings.Join(got, "⏎") != strings.Join(tt.want, "⏎") {
				t.Errorf("split(%q)\n got %q\nwant %q", tt.text, got, tt.want)
			}
		})
	}
}

func TestSplitCutsEndlessSentences(t *testing.T) {
	for _, text := range []string{strings.Repeat("word ", 1000), strings.Repeat("字", 5000), strings.Repeat("x", 5000)} {
		for _, u := range split(text) {
			if n := u.end - u.start; n > longest {
				t.Errorf("a unit of %d bytes in %.20q…", n, text)
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"One. Two.", "- a\n- b", "| a | b |\n|---|---|\n| 1 | 2 |", "```\nx\n", "a\tb\n1\t2", "押金。五天", "e.g. x", "\xff\xfe.\r\n", "# h\n\n1) x\n\ty", "\u2028.\u0085",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		covered := make([]bool, len(text))
		for _, u := range split(text) {
			if u.start < at || u.end <= u.start || u.end > len(text) {
				t.Fatalf("unit %d:%d after %d in %q", u.start, u.end, at, text)
			}
			if u.line == "" || !utf8.ValidString(u.line) {
				t.Fatalf("line %q of %q", u.line, text)
			}
			at = u.end
			for i := u.start; i < u.end; i++ {
				covered[i] = true
			}
		}
		for i, r := range text {
			if (unicode.IsLetter(r) || unicode.IsDigit(r)) && !covered[i] && !strings.Contains(text, "\x1b") && !strings.Contains(text, "\u009b") {
				// An item's mark and a link's address hold letters that are not shown.
				line := text[strings.LastIndexByte(text[:i], '\n')+1:]
				if itemMark.MatchString(line) {
					continue
				}
				t.Fatalf("%q at %d of %q is in no unit", r, i, text)
			}
		}
	})
}
