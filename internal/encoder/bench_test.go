package encoder

import (
	"context"
	"math/rand/v2"
	"testing"
)

// randomSequences makes n sequences of length random tokens each.
func randomSequences(m *Model, n, length int) []Sequence {
	r := rand.New(rand.NewPCG(7, 7))
	seqs := make([]Sequence, n)
	for i := range seqs {
		seqs[i].IDs = make([]int32, length)
		for j := range seqs[i].IDs {
			seqs[i].IDs[j] = r.Int32N(int32(m.config.Vocabulary))
		}
	}
	return seqs
}

func BenchmarkForward(b *testing.B) {
	for _, c := range []struct {
		name      string
		n, length int
		joint     int
	}{
		{"1x20", 1, 20, 0},
		{"1x256", 1, 256, 0},
		{"32x120", 32, 120, 0},
		{"joint6x120", 6, 120, 3},
	} {
		for _, k := range available() {
			b.Run(c.name+"/"+k.name, func(b *testing.B) {
				m := minilmWith(b, k)
				seqs := randomSequences(m, c.n, c.length)
				for b.Loop() {
					if _, err := m.Forward(context.Background(), seqs, Options{Joint: c.joint}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := load(minilmFolder(b), available()[0]); err != nil {
			b.Fatal(err)
		}
	}
}
