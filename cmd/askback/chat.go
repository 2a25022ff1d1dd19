package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval/qdrant"
)

// maxLine is the longest line of input that is read, in bytes. Longer than a
// message may be, so that a long message gets the pipeline's own answer.
const maxLine = 4 << 20

// chatCommand is a conversation in the terminal or, with JSON, for scripts.
type chatCommand struct {
	JSON bool `name:"json" help:"For scripts: read a turn from each line of standard input, plain text or {\"conversation\",\"user\",\"text\",\"choice\",\"clarification\",\"key\"}, and print a JSON object for each. The exit code is the last turn's."`
	Why  bool `help:"After each turn, show what happened in it."`
	sourceFlags
	gateFlags
	conversationFlags
	waitFlags
}

// Run talks until the input ends.
func (c *chatCommand) Run(ctx context.Context, io streams) error {
	start := time.Now()
	opening, stop := interruptible(ctx)
	a, err := openAssistant(opening, io.err, setup{source: c.sourceFlags, gates: c.gateFlags, kept: c.storeFlags, wait: c.limit()})
	stop()
	if err != nil {
		return err
	}
	defer a.close()
	if c.JSON {
		return c.script(ctx, io, a)
	}
	t := &talk{chatCommand: c, assistant: a, out: io.out, style: styleFor(io.out)}
	t.welcome(time.Since(start))
	if err := t.goOn(ctx); err != nil {
		return err
	}
	return t.loop(ctx, io.in)
}

// scriptMessage is a turn as a script writes it.
type scriptMessage struct {
	Conversation  *string `json:"conversation"`
	User          *string `json:"user"`
	Text          string  `json:"text"`
	Choice        string  `json:"choice"`
	Clarification string  `json:"clarification"` // that is replied to
	Key           string  `json:"key"`           // names the message: sent again it is the same turn
}

// lineFault stands in the output for a line that no turn came of, so that lines
// of output and input stay abreast.
type lineFault struct {
	Kind  string `json:"kind"` // "error"
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// script answers each line of the input with a line of JSON. For a line that
// cannot be taken that is a lineFault, standard error says it too, and the rest
// goes on; the exit code is then that of a failure.
func (c *chatCommand) script(ctx context.Context, io streams, a *assistant) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	lines := newLineReader(io.in, maxLine)
	out := json.NewEncoder(printableJSON{io.out})
	code, failed := exitAnswered, false
	for n := 1; ; n++ {
		line, err := lines.next()
		if isEOF(err) {
			break
		}
		if err == nil && n == 1 {
			line = strings.TrimPrefix(line, "\uFEFF")
		}
		var m pipeline.Message
		if err == nil {
			m, err = c.parse(line)
		}
		var r pipeline.Result
		if err == nil {
			r, err = askPatiently(ctx, a.pipeline, m, io.err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(io.err, "askback: line %d: %v\n", n, err)
			if err := out.Encode(lineFault{"error", n, err.Error()}); err != nil {
				return fmt.Errorf("writing the result: %w", err)
			}
			failed = true
			continue
		}
		record := r.Record()
		if err := out.Encode(record); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		if c.Why {
			printTrace(io.err, styleFor(io.err), record.Trace)
		}
		code = exitCode(record.Kind)
	}
	if failed {
		return outcome(exitFailed)
	}
	if code != exitAnswered {
		return outcome(code)
	}
	return nil
}

// parse reads a line of a script: an object if it begins with a brace.
func (c *chatCommand) parse(line string) (pipeline.Message, error) {
	m := c.message(line)
	if !strings.HasPrefix(strings.TrimSpace(line), "{") {
		return m, nil
	}
	var s scriptMessage
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return m, fmt.Errorf(`not a message: %w; write plain text or {"conversation":"...","text":"..."} or {"choice":"1"}`, err)
	}
	if d.More() {
		return m, errors.New("not a message: there is more on the line after the object")
	}
	m.Text, m.Choice, m.Clarification, m.Key = s.Text, s.Choice, s.Clarification, s.Key
	if s.User != nil {
		m.User = *s.User
	}
	if s.Conversation != nil {
		m.Conversation = *s.Conversation
	}
	return m, nil
}

// talk is a conversation with a person.
type talk struct {
	*chatCommand
	*assistant
	out   io.Writer
	style style
	last  pipeline.Result
}

// welcome is the first screen: what this is, what it has loaded, what to try.
func (t *talk) welcome(ready time.Duration) {
	s := t.style
	fmt.Fprintf(t.out, "%s answers from your documents, and asks back instead of guessing.\n\n", s.bold("askback"))
	fmt.Fprintf(t.out, "  sources    %s\n", t.sources)
	fmt.Fprintf(t.out, "  clarifier  %s\n", t.clarifierName)
	where := "; everything runs in this process"
	for i, line := range t.served {
		label := ""
		if i == 0 {
			label = "models"
		}
		fmt.Fprintf(t.out, "  %-9s  %s\n", label, line)
		where = ""
	}
	if _, server := t.knowledge.(*qdrant.Store); server {
		where = ""
	}
	fmt.Fprintf(t.out, "  ready in   %.2f s%s\n\n", ready.Seconds(), where)
	if len(t.try) > 0 {
		fmt.Fprintln(t.out, "Try (type the number):")
		for i, q := range t.try {
			fmt.Fprintf(t.out, "  %d  %-52s %s\n", i+1, q.text, s.dim(q.shows))
		}
		fmt.Fprintln(t.out)
	}
	fmt.Fprintln(t.out, s.dim("Type a question. /why shows how the last turn was decided, /help the rest, Ctrl-D leaves."))
}

// goOn shows where a stored conversation stands: a clarification that waits is
// shown again.
func (t *talk) goOn(ctx context.Context) error {
	if t.Store == "" {
		return nil
	}
	kept, err := t.store.Load(ctx, t.Conversation, 1)
	if errors.Is(err, conversation.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	waits, err := t.pipeline.Pending(ctx, t.Conversation, t.User)
	if err != nil {
		return turnError(err)
	}
	fmt.Fprintf(t.out, "\n%s\n", t.style.dim(fmt.Sprintf("The conversation %q goes on after %s; /new starts another.", t.Conversation, counted(kept.Next()-1, "turn"))))
	if waits != nil {
		t.last = waits
		fmt.Fprintln(t.out, t.style.dim("It waits for a reply about: "+printable(waits.Question)))
		printResult(t.out, t.style, waits, false)
	}
	return nil
}

const help = `  /why      how the last turn was decided: both gates, the passages, the times
  /sources  what is loaded
  /new      start a new conversation
  /help     this
  /quit     leave (Ctrl-D does too, and Ctrl-C at the prompt; while an answer is written Ctrl-C stops it)
`

// loop reads and answers until the input ends or the person leaves. Ctrl-C
// stops a turn that runs, and leaves at the prompt.
func (t *talk) loop(ctx context.Context, in io.Reader) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	type read struct {
		line string
		err  error
	}
	lines, next := make(chan read), make(chan struct{})
	go func() { // ends with the process: a read of the terminal cannot be broken off
		r := newLineReader(in, maxLine)
		for range next {
			line, err := r.next()
			lines <- read{line, err}
		}
	}()
	defer close(next)
	for {
		fmt.Fprint(t.out, t.style.bold("\n> "))
		next <- struct{}{}
		var l read
		select {
		case l = <-lines:
		case <-interrupts:
			fmt.Fprintln(t.out)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case isEOF(l.err):
			fmt.Fprintln(t.out)
			return nil
		case errors.Is(l.err, errLineTooLong):
			fmt.Fprintln(t.out, l.err)
			continue
		case l.err != nil:
			return fmt.Errorf("reading the input: %w", l.err)
		}
		if !isTerminal(in) { // a transcript shows what was typed
			fmt.Fprintln(t.out, printable(l.line))
		}
		if t.command(l.line) {
			if l.line = strings.TrimSpace(l.line); l.line == "/quit" || l.line == "/exit" {
				return nil
			}
			continue
		}
		t.turn(ctx, l.line, interrupts)
	}
}

// command carries out a line that begins with a slash.
func (t *talk) command(line string) bool {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "/") || strings.ContainsAny(line, " \t") {
		return false
	}
	switch line {
	case "/quit", "/exit":
	case "/why":
		if t.last == nil {
			fmt.Fprintln(t.out, "Nothing was asked yet.")
		} else {
			printTrace(t.out, t.style, t.last.Record().Trace)
		}
	case "/sources":
		fmt.Fprintln(t.out, t.sources)
		for _, d := range t.documents {
			fmt.Fprintln(t.out, "  "+printable(d))
		}
	case "/new":
		t.Conversation = newConversationID()
		fmt.Fprintln(t.out, "A new conversation.")
	default:
		fmt.Fprint(t.out, help)
	}
	return true
}

// turn runs one turn and shows it as it comes.
func (t *talk) turn(ctx context.Context, text string, interrupts <-chan os.Signal) {
	if strings.TrimSpace(text) == "" {
		fmt.Fprintln(t.out, t.style.dim("Type a question, /help or Ctrl-D."))
		return
	}
	// A number is one of the questions to try, unless a clarification waits.
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n >= 1 && n <= len(t.try) {
		if _, waits := t.last.(*pipeline.Clarification); !waits {
			text = t.try[n-1].text
			fmt.Fprintln(t.out, t.style.dim("  "+text))
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-done:
		}
	}()
	streamed := false
	for e, err := range t.pipeline.Stream(ctx, t.message(text)) {
		if err != nil {
			if errors.Is(err, context.Canceled) {
				err = errors.New("stopped; the conversation is as it was before this question")
				if streamed {
					err = errors.New("stopped; what stands here is kept as broken off, and nothing else has changed")
				}
			}
			if streamed {
				fmt.Fprintln(t.out)
			}
			fmt.Fprintln(t.out, t.style.ask("! ")+printable(err.Error()))
			return
		}
		switch e := e.(type) {
		case pipeline.Waiting:
			fmt.Fprintln(t.out, t.style.dim(waiting(e)))
		case pipeline.Delta:
			fmt.Fprint(t.out, strings.Map(visible, e.Text))
			streamed = true
		case pipeline.Finished:
			t.last = e.Result
			printResult(t.out, t.style, e.Result, streamed)
			if t.Why {
				printTrace(t.out, t.style, e.Result.Record().Trace)
			}
		}
	}
}

// turnError marks what the user can mend, so that the exit code says usage.
func turnError(err error) error {
	for _, fault := range []error{pipeline.ErrEmpty, pipeline.ErrTooLong, pipeline.ErrNoPending, pipeline.ErrNoOption, pipeline.ErrSettled, pipeline.ErrKey, conversation.ErrUser} {
		if errors.Is(err, fault) {
			return usageError{err}
		}
	}
	return err
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// interruptible is ctx, cancelled by Ctrl-C as well.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt)
}
