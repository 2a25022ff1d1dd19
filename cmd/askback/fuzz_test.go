package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzDotenv reads anything as a .env file: a complaint about a line names it and
// never tells its value.
func FuzzDotenv(f *testing.F) {
	for _, seed := range []string{"A=b\n", "export A='b$c'\nB=\"x$y\"", "\uFEFFKEY=pa$$word#1 # note", "A=\"two\nlines\"", "=\n'", "A=“x”", "A: b\r\nA=`c`"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		for _, p := range envPitfalls(text) {
			if p.line < 1 || p.line > lines || p.name == "" || p.why == "" || p.do == "" {
				t.Errorf("%q: %+v", text, p)
			}
		}
		const secret = "5ec3e7-v4lue"
		for _, text := range []string{text, "KEY=" + secret + text, "KEY " + secret + text} {
			if _, err := readEnv(text); err != nil {
				if said := envFault(text, err).Error(); strings.Contains(said, secret) {
					t.Errorf("%q: the value is told: %s", text, said)
				}
			}
		}
		for _, p := range envPitfalls("KEY=" + secret + text) {
			if strings.Contains(p.name+p.why+p.do, secret) {
				t.Errorf("%q: the value is told: %+v", text, p)
			}
		}
	})
}

// FuzzScriptLine reads anything as a line of `chat --json`: a message, or a fault that
// says what a message looks like.
func FuzzScriptLine(f *testing.F) {
	for _, seed := range []string{"What is the deposit?", `{"text":"x"}`, `{"choice":"1","clarification":"c","key":"k","user":"u","conversation":"v"}`, ` {"text":1}`, `{"text":"x"} {}`, "{", "\x00{}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		m, err := new(chatCommand).parse(line)
		object := strings.HasPrefix(strings.TrimSpace(line), "{")
		switch {
		case err != nil && (!object || !strings.HasPrefix(err.Error(), "not a message: ")):
			t.Errorf("%q: %v", line, err)
		case !object && m.Text != line:
			t.Errorf("%q is read as %q", line, m.Text)
		}
	})
}

// FuzzLines reads anything line by line: every line is given once, in its order.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\r\n\ntwo"), 2)
	f.Add([]byte("\n"), 100)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		if most < 1 || most > 1<<16 {
			t.Skip()
		}
		r := newLineReader(bytes.NewReader(data), most)
		for n := 0; ; n++ {
			line, err := r.next()
			if len(line) > most {
				t.Fatalf("a line of %d bytes, at most %d are asked for", len(line), most)
			}
			if err == errLineTooLong {
				continue
			}
			if err != nil {
				break
			}
			if n > len(data) {
				t.Fatal("it does not end")
			}
		}
	})
}

// FuzzInstruction reads anything as the io.yaml of an adapter: an instruction, or an
// error that names the file.
func FuzzInstruction(f *testing.F) {
	for _, seed := range []string{"instruction: 'Say {{x}}'\n", "instruction: '{last_message}'", "sentence_boundaries: {a: b}", "docs_as_message: json", "instruction: [a]", "a: &a [*a]", "", "instruction: \"\\0\"", "\xff"} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(dir, "io.yaml")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := readInstruction(name)
		if err != nil && (text != "" || !strings.Contains(err.Error(), name)) {
			t.Errorf("%q: %q, %v", data, text, err)
		}
	})
}
