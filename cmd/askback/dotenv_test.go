package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEnvPitfalls(t *testing.T) {
	for _, tc := range []struct{ line, says string }{
		{`PASSWORD=blue$7Kite#9`, "an unquoted $"},
		{`PASSWORD=blue$Kite`, "an unquoted $"},
		{`PASSWORD=${OTHER}x`, "an unquoted $"},
		{`PASSWORD=blue#9`, "an unquoted #"},
		{`export PASSWORD=blue#9`, "an unquoted #"},
		{`PASSWORD="blue$7Kite"`, "in double quotes"},
		{`PASSWORD=“blue”`, "typographic"},
		{`PASSWORD='blue$7Kite#9'`, ""},
		{`PASSWORD="blue#9"`, ""},
		{`PASSWORD="blue\$9"`, ""},
		{`PASSWORD=plain # the staging one`, ""},
		{`PASSWORD=a=b c`, ""},
		{`PASSWORD=`, ""},
		{`# PASSWORD=blue$9`, ""},
		{``, ""},
		{"PASSWORD='two\nlines=$x#\n'", ""},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			got := envPitfalls("\uFEFFFIRST='x'" + end + strings.ReplaceAll(tc.line, "\n", end) + end + "LAST=y" + end)
			if tc.says == "" {
				if len(got) != 0 {
					t.Errorf("%q: %+v", tc.line, got)
				}
				continue
			}
			if len(got) != 1 || got[0].line != 2 || got[0].name != "PASSWORD" || !strings.Contains(got[0].why, tc.says) {
				t.Errorf("%q: %+v, want %q", tc.line, got, tc.says)
			}
			for _, p := range got {
				if said := p.why + p.do; strings.Contains(said, "blue") || strings.Contains(said, "Kite") {
					t.Errorf("%q: the value is told: %s", tc.line, said)
				}
			}
		}
	}
}

// What stands in single quotes reaches the program as it is.
func TestQuotedSettingsAreKept(t *testing.T) {
	for _, secret := range []string{`blue$7Kite#9`, `a=b c # d`, `say "hi"`, `back\slash $HOME`, ` spaces `} {
		for _, end := range []string{"\n", "\r\n"} {
			file := filepath.Join(t.TempDir(), ".env")
			if err := os.WriteFile(file, []byte("ASKBACK_TEST_SECRET='"+secret+"'"+end+"ASKBACK_TEST_NEXT=1"+end), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"ASKBACK_TEST_SECRET", "ASKBACK_TEST_NEXT"} {
				t.Setenv(name, "") // so that it is as it was afterwards
				os.Unsetenv(name)
			}
			if _, err := loadSettings(file); err != nil {
				t.Fatal(err)
			}
			if got := os.Getenv("ASKBACK_TEST_SECRET"); got != secret || os.Getenv("ASKBACK_TEST_NEXT") != "1" {
				t.Errorf("%q is read as %q", secret, got)
			}
		}
	}
}

// A .env that cannot be read is told by the line where the fault begins, and nothing that
// stands in it is.
func TestBrokenSettings(t *testing.T) {
	for _, tc := range []struct{ text, says string }{
		{"ASKBACK_TEST_A=1\nOPENAI_API_KEY Kite-7\nPGPASSWORD=Kite-8\n", "line 2 is no setting"},
		{"# first\n\nASKBACK_TEST_A='x\ny'\n# a note\n\nKite 7\nPGPASSWORD=Kite-8", "line 7 is no setting"},
		{"ASKBACK_TEST_A=1\r\nPGPASSWORD=\"Kite-8\r\nASKBACK_TEST_B=Kite\r\n", "line 2: a quote"},
		{"PGPASSWORD='Kite-8", "line 1: a quote"},
		{"Kite", "line 1 is no setting"},
		{"ASKBACK_TEST_A=1\n= Kite\n", "line 2 is no setting"},
		{"\uFEFFKite-7\n", "line 1 is no setting"},
	} {
		file := filepath.Join(t.TempDir(), ".env")
		if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := loadSettings(file)
		if err == nil || !strings.HasPrefix(err.Error(), tc.says) || strings.Contains(err.Error(), "Kite") {
			t.Errorf("%q: %v, %v; want %q", tc.text, got, err, tc.says)
		}
	}
}
