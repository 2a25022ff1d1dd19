package conversation

import (
	"strings"
	"testing"
)

func TestTitle(t *testing.T) {
	for _, c := range []struct{ question, want string }{
		{"", ""},
		{"How long does it take?", "How long does it take?"},
		{"  two\n\tlines \u0000 here ", "two lines here"},
		{"Can I bring back a bike that I bought online to the shop, if the box is gone?", "Can I bring back a bike that I bought online to the shop, if…"},
		{"Can I bring back a bike that I have bought online in the shop, or is it too late?", "Can I bring back a bike that I have bought online in the…"},
		{strings.Repeat("长", 100), strings.Repeat("长", 60) + "…"},
		{strings.Repeat("👩‍🔧", 61), strings.Repeat("👩‍🔧", 60) + "…"},
		{"a " + strings.Repeat("x", 100), "a " + strings.Repeat("x", 58) + "…"},
		{"caf\xe9 prices", "caf\uFFFD prices"},
	} {
		if got := Title(c.question); got != c.want {
			t.Errorf("%q: %q, want %q", c.question, got, c.want)
		}
	}
	if got := CleanTitle(strings.Repeat("word ", 100)); len([]rune(got)) > MaxTitle+1 || !strings.HasSuffix(got, "word…") {
		t.Errorf("%q", got)
	}
}
