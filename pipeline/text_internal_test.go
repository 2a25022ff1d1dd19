package pipeline

import (
	"math/rand/v2"
	"testing"
)

// However a text is cut, its pieces joined are the text.
func TestRunes(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, text := range []string{"", "plain", "€ 200, 👩‍🔧 done 🇵🇹", "caf\xe9 \xff\xfe \xe2\x82", "\xf0\x9f\x91", "\x80\x80\x80\x80\x80", "a\xf0\x9fb\xe2c"} {
		for range 200 {
			var pieces runes
			joined, rest := "", text
			for rest != "" {
				n := 1 + r.IntN(min(3, len(rest)))
				piece := pieces.next(rest[:n])
				if piece != validText(piece) {
					t.Fatalf("piece %q (seed %d)", piece, seed)
				}
				joined += piece
				rest = rest[n:]
			}
			if joined += pieces.rest(); joined != validText(text) {
				t.Fatalf("%q came as %q (seed %d)", text, joined, seed)
			}
		}
	}
}
