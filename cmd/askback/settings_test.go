package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// known are all settings of the program.
func known(t *testing.T) []string {
	t.Helper()
	var c cli
	k, err := kong.New(&c, kong.DefaultEnvars("ASKBACK"), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	return variables(k.Model)
}

// readSettings has each variable that the code names, and no other of ours.
func TestReadSettings(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		// A variable's name is a literal where it is read, or a key of a table of them.
		ast.Inspect(f, func(n ast.Node) bool {
			if name, ok := n.(*ast.BasicLit); ok && name.Kind == token.STRING && file != "settings.go" {
				if s, _ := strconv.Unquote(name.Value); strings.HasPrefix(s, "QDRANT_") && !strings.ContainsAny(s, " %") {
					read = append(read, s)
				}
			}
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Getenv" || f.Sel.Name == "LookupEnv") {
				switch arg := call.Args[0].(type) {
				case *ast.BasicLit:
					s, _ := strconv.Unquote(arg.Value)
					read = append(read, s)
				case *ast.Ident:
				default:
					t.Errorf("%s: %s of something else than a name", file, f.Sel.Name)
				}
			}
			return true
		})
	}
	for _, name := range read {
		if !slices.Contains(readSettings, name) && name != "TERM" {
			t.Errorf("%s is read and not in readSettings", name)
		}
	}
	for _, name := range readSettings {
		if strings.HasPrefix(name, "QDRANT_") && !slices.Contains(read, name) {
			t.Errorf("%s is in readSettings and not read", name)
		}
	}
	if len(read) < 6 {
		t.Errorf("only %q found", read)
	}
}

func TestUnknownSettings(t *testing.T) {
	for _, tc := range []struct{ name, meant string }{
		{"ASKBACK_DOC", "ASKBACK_DOCS"},
		{"ASKBACK_DOCUMENTS", ""},
		{"ASKBACK_CHATMODEL", "ASKBACK_CHAT_MODEL"},
		{"ASKBACK_POST_TRESHOLD", "ASKBACK_POST_THRESHOLD"},
		{"QDRANT_ADRR", "QDRANT_ADDR"},
		{"QDRANT_APIKEY", "QDRANT_API_KEY"},
		{"QDRANT_URL", ""},
	} {
		got := unknownSettings([]string{"PATH=/bin", tc.name + "=secret", "ASKBACK_DOCS=x"}, known(t))
		if want := map[string]string{tc.name: tc.meant}; !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	fine := []string{"ASKBACK_TEST_POSTGRES=x", "QDRANT__SERVICE__API_KEY=x", "OTHER_DOC=x", "OLLAMA_MODELS=x"}
	for _, name := range known(t) {
		fine = append(fine, name+"=x")
	}
	if got := unknownSettings(fine, known(t)); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// What doctor says of a name that is none names the one that was meant, and
// never the value. It may stand in .env or in the environment.
func TestDoctorUnknownSetting(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(".env", []byte("ASKBACK_DOC='blue$7Kite'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Unsetenv("ASKBACK_DOC") })
	t.Setenv("QDRANT_HOST", "blue$7Kite")
	out, errOut, code := command(t, "", "doctor")
	for _, want := range []string{
		"warn  settings         ASKBACK_DOC is no setting of this program", "-> did you mean ASKBACK_DOCS?",
		"warn  settings         QDRANT_HOST is no setting of this program", ".env.example",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != exitAnswered || strings.Contains(out, "Kite") || t.Failed() {
		t.Errorf("exit code %d:\n%s%s", code, out, errOut)
	}
}

// An API key goes in plain text to another host only where that is said.
func TestPlaintextKey(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("QDRANT_ADDR", "qdrant.invalid:6334")
	t.Setenv("QDRANT_API_KEY", "blue$7Kite#9")
	for _, tc := range []struct {
		allowed, says string
		code          int
	}{
		{"", "QDRANT_PLAINTEXT_KEY=true", exitUsage},
		{"false", "QDRANT_TLS=true", exitUsage},
		{"yes please", `QDRANT_PLAINTEXT_KEY is "yes please"`, exitUsage},
	} {
		t.Setenv("QDRANT_PLAINTEXT_KEY", tc.allowed)
		_, errOut, code := command(t, "", "ask", "hello")
		if code != tc.code || !strings.Contains(errOut, tc.says) || strings.Contains(errOut, "Kite") {
			t.Errorf("%q: exit code %d: %s", tc.allowed, code, errOut)
		}
	}
	t.Setenv("QDRANT_PLAINTEXT_KEY", "true")
	o, err := qdrantSettings("")
	if err != nil || !o.PlaintextKey || o.TLS {
		t.Errorf("%+v, %v", o, err)
	}
}
