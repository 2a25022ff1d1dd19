package generation

import "testing"

func TestQuotable(t *testing.T) {
	for raw, want := range map[string]string{
		"as it is":                  "as it is",
		"a \x1b[31mlonger part\x1b": "[31mlonger part",
		"caf\xe9 opens":             "opens",
		"two\r\nlines":              "two\r\nlines",
		"short\rlonger":             "longer",
		"\x00":                      "",
	} {
		if got := quotable(raw); got != want {
			t.Errorf("quotable(%q) = %q, want %q", raw, got, want)
		}
	}
}
