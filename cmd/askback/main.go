// Command askback is a grounded assistant that asks before it guesses.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes. A turn's outcome can be read from them by a script.
const (
	exitAnswered  = 0
	exitFailed    = 1
	exitUsage     = 2
	exitAskedBack = 3
	exitNoAnswer  = 4
)

// streams are where a command reads and writes: the result goes to out,
// everything else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// cli is the command line.
type cli struct {
	Chat  chatCommand  `cmd:"" help:"Talk to the assistant, in the terminal or (--json) line by line for scripts."`
	Ask   askCommand   `cmd:"" help:"Ask one question."`
	Serve serveCommand `cmd:"" help:"Serve the assistant: a page for the browser, and an HTTP API."`

	MCP mcpCommand `cmd:"" name:"mcp" help:"Serve a client of the Model Context Protocol, which starts this program, over standard input and output."`

	Eval evalCommand `cmd:"" help:"Measure the gates on labelled cases."`

	Ingest ingestCommand `cmd:"" help:"Bring an index file or a Qdrant collection up to date with a folder."`

	Doctor doctorCommand `cmd:"" help:"Check what the settings name: servers, models, index, clarifier; and say what to do where something is wrong."`

	Healthcheck healthcheckCommand `cmd:"" help:"Ask a running server whether it is well; the exit code says so."`

	Keys keysCommand `cmd:"" help:"Make, list and revoke the keys that a server is used with."`

	Clarifier clarifierCommand `cmd:"" help:"Install the fine-tuned clarifier on an Ollama server."`

	Conversations conversationsCommand `cmd:"" help:"List, show, export and delete conversations."`

	Version kong.VersionFlag `help:"Show the version and leave." env:"-"`
}

// outcome is an exit code as an error: the command did its work, and the code
// says how it ended.
type outcome int

func (o outcome) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run is the whole program; it gives the exit code.
func run(ctx context.Context, args []string, io streams) int {
	dropEmptySettings() // so that .env may set them
	// A missing .env is no fault; a broken one is.
	settings, err := loadSettings(".env")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(io.err, "askback: reading .env: %v\n", err)
		return exitUsage
	}
	dropEmptySettings() // of .env
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("askback"),
		kong.Description("A grounded assistant that asks before it guesses. Without options it answers from a sample knowledge base that it carries."),
		kong.Vars{"version": version()},
		kong.DefaultEnvars("ASKBACK"),
		kong.Writers(io.out, io.err),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(io),
	)
	if err != nil {
		fmt.Fprintln(io.err, "askback:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help or --version was answered
		return exited
	}
	if err != nil {
		fmt.Fprintf(io.err, "askback: %s\nTry: askback --help\n", printable(err.Error()))
		return exitUsage
	}
	if parsed.Command() != "doctor" { // which says it itself
		warnOfUnknown(io.err, settings, variables(parser.Model))
	}
	err = parsed.Run()
	var o outcome
	switch {
	case err == nil:
		return exitAnswered
	case errors.As(err, &o):
		return int(o)
	case errors.Is(err, errUsage):
		fmt.Fprintln(io.err, "askback:", printable(err.Error()))
		return exitUsage
	}
	fmt.Fprintln(io.err, "askback:", printable(told(err)))
	return exitFailed
}

// told is what is said of a failure. One that Ctrl-C or SIGTERM made is no fault of the
// step that it met; advice on a line of its own stays.
func told(err error) string {
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		_, advice, _ := strings.Cut(text, "\n")
		text = strings.TrimSpace("stopped\n" + advice)
	}
	return text
}

// loadSettings sets the variables of a .env file that are not set yet, and gives all
// that it holds. A byte-order mark, as some editors write, is no part of the first name.
func loadSettings(name string) (map[string]string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	settings, err := readEnv(text)
	if err != nil {
		return nil, envFault(text, err)
	}
	for name, value := range settings {
		if _, set := os.LookupEnv(name); !set {
			_ = os.Setenv(name, value)
		}
	}
	return settings, nil
}

// dropEmptySettings takes ASKBACK_ variables that are set to nothing as unset.
func dropEmptySettings() {
	for _, setting := range os.Environ() {
		if name, value, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "ASKBACK_") && value == "" {
			_ = os.Unsetenv(name)
		}
	}
}

// errUsage marks a fault in what the user gave, as against a failure.
var errUsage = errors.New("usage")

// usageError is a fault in the command line or the input.
type usageError struct{ error }

func (u usageError) Is(target error) bool { return target == errUsage }
func (u usageError) Unwrap() error        { return u.error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }
