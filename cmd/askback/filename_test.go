package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A file's name cannot forge a line of what the program says of it.
func TestFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"a b.md": "a b.md: empty", "é.md": "é.md: empty", "nl\nname.md": `"nl\nname.md": empty`, "\x1b[31m.md": `"\x1b[31m.md": empty`, "\u0085.md": `"\u0085.md": empty`,
	} {
		if got := ofFile(name, "empty"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := ofFile("a\nb", "open a\nb: denied"); strings.Contains(got, "\n") {
		t.Errorf("the reason breaks the line: %q", got)
	}
	if runtime.GOOS == "windows" {
		t.Skip("there no name holds a line break")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nl\nname.md": "", "deposit.md": "The deposit is 200."} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"ask", "--docs=" + dir, "What is the deposit?"}, {"ingest", dir, "--dry-run", "--index=" + filepath.Join(t.TempDir(), "x.db")}} {
		out, errOut, _ := command(t, "", args...)
		if said := out + errOut; strings.Contains(said, "nl\nname") || !strings.Contains(said, `"nl\nname.md": `) {
			t.Errorf("%s: %s", args[0], said)
		}
	}
}

// A server whose folder is not there says so before it listens.
func TestServeNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	out, errOut, code := command(t, "", "serve", "--addr=127.0.0.1:0", "--docs="+dir)
	if want := "askback: --docs: opening the folder " + dir + ": it does not exist\n"; code != exitUsage || errOut != want || out != "" {
		t.Errorf("code %d, %q, %q, want %q", code, out, errOut, want)
	}
}
