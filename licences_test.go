package askback_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

var update = flag.Bool("update", false, "write the list of modules in NOTICE anew")

// allowed are the licences of what may be linked into the program.
var allowed = []string{"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD", "Unlicense", "MPL-2.0"}

// systems are those that the program is built for; each links its own modules.
var systems = []string{"linux", "darwin", "windows"}

const listed = "The program links these Go modules, each under the licence and notice named:\n"

type dependency struct{ path, dir string }

// linked gives the modules that the program is made of on any system.
func linked(t *testing.T) []dependency {
	t.Helper()
	found := map[dependency]bool{}
	for _, system := range systems {
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "./cmd/askback")
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			t.Fatalf("go list for %s: %s", system, exit.Stderr)
		} else if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				found[dependency{path, dir}] = true
			}
		}
	}
	var all []dependency
	for m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b dependency) int { return strings.Compare(a.path, b.path) })
	return all
}

var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)`)
	copyright   = regexp.MustCompile(`(?im)^\W*(copyright (?:\(c\)|©|[0-9]).*)$`)
)

// licence names a module's licences and who holds the copyright.
func licence(t *testing.T, m dependency) string {
	t.Helper()
	files, err := os.ReadDir(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names, holders []string
	for _, f := range files {
		if f.IsDir() || !licenceName.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range licensecheck.Scan(text).Match {
			if !match.IsURL && !slices.Contains(names, match.ID) {
				names = append(names, match.ID)
			}
		}
		for _, c := range copyright.FindAllStringSubmatch(string(text), 3) {
			if c := strings.Join(strings.Fields(c[1]), " "); !slices.Contains(holders, c) && !strings.ContainsAny(c, "[{") {
				holders = append(holders, c)
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s: no licence is known in its folder; it must not be linked", m.path)
	}
	for _, n := range names {
		if !slices.Contains(allowed, n) {
			t.Errorf("%s is under %s, which is not among the licences that may be linked: %v", m.path, n, allowed)
		}
	}
	line := "- " + m.path + ": " + strings.Join(names, ", ")
	if len(holders) > 0 {
		line += ". " + strings.TrimSuffix(strings.Join(holders, "; "), ".")
	}
	return line + ".\n"
}

// notices gives the NOTICE files of modules, which the Apache License wants kept.
func notices(t *testing.T, modules []dependency) string {
	t.Helper()
	var out strings.Builder
	for _, m := range modules {
		for _, name := range []string{"NOTICE", "NOTICE.txt"} {
			text, err := os.ReadFile(filepath.Join(m.dir, name))
			if errors.Is(err, os.ErrNotExist) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "\n--- NOTICE of %s ---\n\n%s\n", m.path, bytes.TrimSpace(text))
		}
	}
	return out.String()
}

// TestNotice: NOTICE names every module that is linked, with its licence, and none
// besides; after a change of go.mod run `go test -run TestNotice . -update`.
func TestNotice(t *testing.T) {
	data, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	own, have, ok := strings.Cut(string(data), listed)
	if !ok {
		t.Fatalf("NOTICE lacks the line %q", listed)
	}
	modules := linked(t)
	if len(modules) < 50 {
		t.Fatalf("only %d modules were found", len(modules))
	}
	want := "\n"
	for _, m := range modules {
		want += licence(t, m)
	}
	want += notices(t, modules)
	if *update {
		if err := os.WriteFile("NOTICE", []byte(own+listed+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("NOTICE does not fit what is linked; run `go test -run TestNotice . -update` and look at what changed")
		for line := range strings.Lines(want) {
			if strings.HasPrefix(line, "- ") && !strings.Contains(have, line) {
				t.Errorf("it lacks %s", line)
			}
		}
	}
}

// assets are the ends of names of what is no source text: weights, data, fonts,
// pictures, and what a page loads.
var assets = []string{".safetensors", ".bin", ".gguf", ".onnx", ".wasm", ".jsonl", ".csv", ".parquet", ".gz", ".zip",
	".ttf", ".otf", ".woff", ".woff2", ".png", ".jpg", ".gif", ".ico", ".svg", ".js", ".mjs", ".css"}

// TestNoticeNamesAssets: what is no Go module is listed by hand, by its folder; no
// such file lies outside the folders named, and each of these is there. What tests
// alone read is left out.
func TestNoticeNamesAssets(t *testing.T) {
	data, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	own, _, _ := strings.Cut(string(data), listed)
	var named []string
	for word := range strings.FieldsSeq(own) {
		word = strings.Trim(word, ",.;:()")
		first, _, path := strings.Cut(word, "/")
		if !path || strings.Contains(first, ".") { // a module
			continue
		}
		if _, err := os.Stat(word); err != nil {
			t.Errorf("NOTICE names %s, which is gone", word)
		}
		named = append(named, word)
	}
	found := 0
	err = filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if path = filepath.ToSlash(path); !slices.Contains(assets, strings.ToLower(filepath.Ext(path))) {
			return nil
		}
		found++
		if !slices.ContainsFunc(named, func(n string) bool { return path == n || strings.HasPrefix(path, n+"/") }) {
			t.Errorf("NOTICE does not name %s, nor a folder that it is in", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 30 {
		t.Errorf("only %d files were found", found)
	}
}
