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
			if err := loadSettings(file); err != nil {
				t.Fatal(err)
			}
			if got := os.Getenv("ASKBACK_TEST_SECRET"); got != secret || os.Getenv("ASKBACK_TEST_NEXT") != "1" {
				t.Errorf("%q is read as %q", secret, got)
			}
		}
	}
}
