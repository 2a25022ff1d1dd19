package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

const readme = "../../README.md"

func readReadme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// block gives the fenced block that follows a marker comment.
func block(t *testing.T, text, marker string) (body string, start, end int) {
	t.Helper()
	at := strings.Index(text, "<!-- "+marker+" -->")
	if at < 0 {
		t.Fatalf("README.md has no %q marker", marker)
	}
	open := at + strings.Index(text[at:], "```")
	start = open + strings.Index(text[open:], "\n") + 1
	end = start + strings.Index(text[start:], "```")
	return text[start:end], start, end
}

// TestReadmeTranscript replays the README's conversation and holds it to what
// the program prints; -update writes it anew from the lines that begin with >.
func TestReadmeTranscript(t *testing.T) {
	text := readReadme(t)
	want, start, end := block(t, text, "transcript")
	var typed strings.Builder
	for line := range strings.Lines(want) {
		if said, ok := strings.CutPrefix(line, "> "); ok {
			typed.WriteString(said)
		}
	}
	t.Setenv("ASKBACK_GATE_TIMEOUT", slow)
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"chat"}, streams{strings.NewReader(typed.String()), &out, &errOut}); code != exitAnswered {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	_, got, ok := strings.Cut(out.String(), "\n> ")
	if !ok {
		t.Fatalf("no prompt in %q", out.String())
	}
	got = strings.TrimSuffix(strings.TrimRight("> "+got, "\n "), "\n\n>") + "\n"
	if *update {
		if err := os.WriteFile(readme, []byte(text[:start]+got+text[end:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("the program prints:\n%s\nREADME.md says:\n%s\nrun: go test ./cmd/askback -run Readme -update", got, want)
	}
}

// TestReadmeSnippet holds the README's library example to the program in
// examples, which is run by its own test.
func TestReadmeSnippet(t *testing.T) {
	text := readReadme(t)
	want, start, end := block(t, text, "quickstart")
	source, err := os.ReadFile("../../examples/quickstart/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, got, ok := strings.Cut(string(source), "func main() {")
	if !ok {
		t.Fatal("examples/quickstart/main.go has no main")
	}
	got, _, _ = strings.Cut("func main() {"+got, "\nfunc must")
	if *update {
		if err := os.WriteFile(readme, []byte(text[:start]+got+text[end:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("examples/quickstart/main.go:\n%s\nREADME.md:\n%s\nrun: go test ./cmd/askback -run Readme -update", got, want)
	}
}

// TestReadmeCommands makes sure that the commands it names are there.
func TestReadmeCommands(t *testing.T) {
	text := readReadme(t)
	var out, errOut bytes.Buffer
	run(t.Context(), []string{"--help"}, streams{strings.NewReader(""), &out, &errOut})
	for _, sub := range []string{"chat", "ask", "eval", "ingest", "doctor", "serve", "mcp", "healthcheck", "clarifier install", "conversations list", "conversations show", "conversations export", "conversations delete", "keys create"} {
		run(t.Context(), append(strings.Fields(sub), "--help"), streams{strings.NewReader(""), &out, &errOut})
	}
	help := out.String()
	for _, flag := range regexp.MustCompile("--[a-z][a-z-]+").FindAllString(text, -1) {
		if !strings.Contains(help, flag) && flag != "--quick" && flag != "--rm" { // of ./test and of docker
			t.Errorf("README.md names %s, which no command has", flag)
		}
	}
	for _, file := range regexp.MustCompile("`((?:[a-z]+/)+[a-z./_-]*|LICENSE|NOTICE)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat("../../" + file[1]); err != nil {
			t.Errorf("README.md names %s, which is not there", file[1])
		}
	}
}
