package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/term"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/pipeline"
)

// isTerminal reports whether w is a terminal that a person looks at.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// style writes ANSI colours, or nothing where they are not wanted.
type style struct{ on bool }

// styleFor is coloured on a terminal, unless NO_COLOR is set.
func styleFor(w io.Writer) style {
	return style{isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string { return s.paint("1", text) }
func (s style) dim(text string) string  { return s.paint("2", text) }
func (s style) ask(text string) string  { return s.paint("33", text) }

// printResult shows the result of a turn to a person; the text of an answer
// may stand there already.
func printResult(w io.Writer, s style, r pipeline.Result, streamed bool) {
	switch r := r.(type) {
	case *pipeline.Answer:
		if !streamed {
			fmt.Fprint(w, printable(r.Text))
		}
		fmt.Fprintln(w)
		printCitations(w, s, r.Citations)
	case *pipeline.Clarification:
		fmt.Fprintln(w, s.ask("? ")+s.bold(printable(r.Text)))
		printOptions(w, s, r)
	case *pipeline.NoAnswer:
		fmt.Fprintln(w, printable(r.Text))
	}
}

// printCitations lists the sources, each once with the numbers that cite it.
func printCitations(w io.Writer, s style, citations []generation.Citation) {
	numbers, order := map[string]string{}, []string{}
	for _, c := range citations {
		source := printable(fmt.Sprintf("%s (%s)", c.Title, c.Source))
		if numbers[source] == "" {
			order = append(order, source)
		}
		numbers[source] += fmt.Sprintf("[%d] ", c.N)
	}
	for _, source := range order {
		fmt.Fprintln(w, s.dim("  "+numbers[source]+source))
	}
}

// printOptions lists the options of a clarification, each with the sources it
// rests on, unless its text lists them already.
func printOptions(w io.Writer, s style, c *pipeline.Clarification) {
	if len(c.Options) == 0 {
		return
	}
	titles := map[string]string{}
	for _, p := range c.Trace.Passages {
		titles[p.ID] = p.Title
	}
	for _, o := range c.Options {
		var from []string
		for _, id := range o.Passages {
			if t := printable(titles[id]); t != "" {
				from = append(from, t)
			}
		}
		line := fmt.Sprintf("  %s  %s", printable(o.ID), printable(o.Text))
		if len(from) > 0 {
			line += s.dim("   " + strings.Join(from, "; "))
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w, s.dim("  Reply with a number or in your own words; “just answer” goes on without, “never mind” drops it."))
}

// printTrace draws what happened in a turn: both gates against their
// thresholds, the passages, and the time of each stage.
func printTrace(w io.Writer, s style, t pipeline.Trace) {
	if r := t.Reply; r != nil {
		fmt.Fprintf(w, "reply     taken as %s (%s) to: %s\n", r.Kind, r.Rule, printable(r.Original))
	}
	names := map[gate.Stage]string{gate.Pre: "gate 1", gate.Post: "gate 2"}
	for _, d := range t.Gates {
		verdict := "goes on: " + string(d.Reason)
		if d.Ask {
			verdict = "asks"
		}
		fmt.Fprintf(w, "%-9s %s %.2f, asks from %.2f: %s\n", names[d.Stage], gauge(d.Score, d.Threshold, 32), d.Score, d.Threshold, verdict)
		if d.Error != "" {
			fmt.Fprintf(w, "          %s\n", printable(d.Error))
		}
		switch d.Second {
		case gate.SecondSpared:
			fmt.Fprintf(w, "          sure by itself: the clarifier model was not asked\n")
		case gate.SecondAsked:
			fmt.Fprintf(w, "          decided by %s\n", d.Clarifier)
		case gate.SecondFailed:
			fmt.Fprintf(w, "          decided alone, since the clarifier model failed: %s\n", printable(d.SecondError))
		}
	}
	for i, q := range t.Queries {
		label := ""
		if i == 0 {
			label = "searched"
		}
		fmt.Fprintf(w, "%-9s %s\n", label, printable(q))
	}
	if t.Context != "" {
		fmt.Fprintf(w, "%-9s %s\n", "after", printable(t.Context))
	}
	for i, p := range t.Passages {
		label := ""
		if i == 0 {
			label = "passages"
		}
		fmt.Fprintf(w, "%-9s %.2f  %s\n", label, p.Cosine, printable(p.Title))
	}
	var stages []string
	var total time.Duration
	for _, st := range t.Stages {
		stages = append(stages, fmt.Sprintf("%s %.1f", st.Name, float64(st.Elapsed)/1e6))
		total += st.Elapsed
	}
	if len(stages) > 0 {
		fmt.Fprintf(w, "ms        %s\n", strings.Join(stages, ", "))
	}
	for _, n := range t.Notes {
		fmt.Fprintln(w, "note     ", s.dim(printable(n)))
	}
}

// gauge draws a score, 0 to 1, as a bar with a mark at the threshold.
func gauge(score, threshold float64, width int) string {
	cells := []rune(strings.Repeat("░", width))
	for i := range cells {
		if float64(i) < score*float64(width) {
			cells[i] = '█'
		}
	}
	if at := int(threshold * float64(width)); at >= 0 && at < width {
		cells[at] = '┃'
	}
	return string(cells)
}

// errLineTooLong says that a line of input was longer than the limit.
var errLineTooLong = errors.New("the line is too long")

// lineReader reads lines of a bounded length.
type lineReader struct {
	in    *bufio.Reader
	limit int
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{bufio.NewReaderSize(r, 64<<10), limit}
}

// next gives the next line without its end. A line over the limit is skipped
// whole and errLineTooLong given; io.EOF comes after the last line.
func (l *lineReader) next() (string, error) {
	var line []byte
	tooLong := false
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line)+len(part) > l.limit {
			tooLong = true
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(line) == 0 && !tooLong || !errors.Is(err, io.EOF)):
			return "", err
		case tooLong:
			return "", fmt.Errorf("%w: over %d bytes", errLineTooLong, l.limit)
		}
		return strings.TrimRight(string(line), "\r\n"), nil
	}
}

// exitCode is the exit code that a result stands for.
func exitCode(k conversation.Kind) int {
	switch k {
	case conversation.KindClarification:
		return exitAskedBack
	case conversation.KindNoAnswer:
		return exitNoAnswer
	}
	return exitAnswered
}

// printable is text that cannot steer a terminal.
func printable(text string) string { return untrusted.Visible(text) }

// visible leaves out of a piece of a text what could steer a terminal.
func visible(r rune) rune {
	if untrusted.Hidden(r) {
		return -1
	}
	return r
}

// printableJSON writes JSON in which what a terminal or a reader would be misled
// by stands as JSON's escapes, which loses nothing. Each Write is of whole
// characters.
type printableJSON struct{ io.Writer }

func (w printableJSON) Write(text []byte) (int, error) {
	var out strings.Builder
	before := ' '
	for _, r := range string(text) {
		if r >= 0x7f && untrusted.HiddenAfter(before, r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		} else {
			out.WriteRune(r)
		}
		before = r
	}
	if _, err := io.WriteString(w.Writer, out.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}
