package retrievertest

import "testing"

func TestQuote(t *testing.T) {
	for _, text := range []string{"", "x", "Leave\nEmployees have 28 days.", "日本語\x00\xff", string(make([]byte, 128))} {
		v := Vector(text)
		for i := range v {
			v[i] *= 0.37 // as a store that keeps unit vectors would
		}
		if got := Quote(v); got != text {
			t.Errorf("Quote gives %q for %q", got, text)
		}
	}
}
