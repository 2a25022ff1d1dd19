package edit

import "testing"

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		most int
		want int
	}{
		{"", "", 2, 0}, {"plan", "plan", 2, 0}, {"plan", "plans", 2, 1}, {"plan", "lpan", 2, 1},
		{"kitten", "sitting", 3, 3}, {"größe", "grösse", 3, 2}, {"a", "abcdef", 2, 3},
	} {
		if got := Distance([]rune(tc.a), []rune(tc.b), tc.most); got != tc.want {
			t.Errorf("%q to %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
