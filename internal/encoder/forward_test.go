package encoder

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func mustForward(t *testing.T, m *Model, seqs []Sequence, o Options) [][]float32 {
	t.Helper()
	out, err := m.Forward(context.Background(), seqs, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// AVX2 and AVX-512 give the same bits, and portable Go nearly the same.
func TestImplementationsAgree(t *testing.T) {
	seqs := append(randomSequences(3, 37), randomSequences(1, 300)...)
	for _, joint := range []int{0, 4} {
		want := mustForward(t, minilmWith(t, portable), seqs, Options{Joint: joint})
		var assembly [][]float32
		for _, k := range available() {
			if k == portable {
				continue
			}
			got := mustForward(t, minilmWith(t, k), seqs, Options{Joint: joint})
			for i := range want {
				for j := range want[i] {
					if math.Abs(float64(got[i][j]-want[i][j])) > 1e-5 {
						t.Fatalf("joint %d, %s: sequence %d, float %d is %g, portable %g", joint, k.name, i, j, got[i][j], want[i][j])
					}
				}
			}
			if assembly != nil && !slices.EqualFunc(got, assembly, slices.Equal) {
				t.Errorf("joint %d: the two assembly versions differ in some bits", joint)
			}
			assembly = got
		}
	}
}

// The states of a sequence do not depend on its neighbours nor on the number
// of goroutines.
func TestSequencesStandAlone(t *testing.T) {
	m := minilmWith(t, available()[0])
	seqs := slices.Concat(randomSequences(40, 11), randomSequences(2, 200), randomSequences(1, 1))
	together := mustForward(t, m, seqs, Options{})
	for _, i := range []int{0, 17, 39, 41, 42} {
		alone := mustForward(t, m, seqs[i:i+1], Options{})
		if !slices.Equal(together[i], alone[0]) {
			t.Errorf("sequence %d has other states in company than alone", i)
		}
	}
	for _, workers := range []int{1, 2, 3, 16} {
		states := make([]float32, len(slices.Concat(together...)))
		if err := m.runApart(context.Background(), seqs, Options{}, states, workers); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(states, slices.Concat(together...)) {
			t.Errorf("%d workers give other states", workers)
		}
	}
}

// With joint layers a sequence sees its neighbours, in any order of them.
func TestJoint(t *testing.T) {
	m := minilmWith(t, available()[0])
	seqs := randomSequences(5, 30)
	seqs[1].IDs = seqs[1].IDs[:7]
	want := mustForward(t, m, seqs, Options{Joint: 2})
	apart := mustForward(t, m, seqs, Options{})
	if slices.Equal(want[0], apart[0]) {
		t.Error("joint attention changes nothing")
	}
	turned := mustForward(t, m, slices.Concat(seqs[3:], seqs[:3]), Options{Joint: 2})
	for j := range want[0] {
		if math.Abs(float64(want[0][j]-turned[2][j])) > 1e-5 {
			t.Fatalf("float %d depends on the order of the other sequences: %g or %g", j, want[0][j], turned[2][j])
		}
	}
	for _, workers := range []int{1, 3, 16} {
		states := make([]float32, len(slices.Concat(want...)))
		if err := m.run(context.Background(), seqs, Options{Joint: 2}, states, workers); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(states, slices.Concat(want...)) {
			t.Errorf("%d workers give other states", workers)
		}
	}
}

// Joint attention over many tokens needs no memory by the square of them.
func TestJointOverManyTokens(t *testing.T) {
	m := minilmWith(t, available()[0])
	seqs := randomSequences(5, 400)
	out := mustForward(t, m, seqs, Options{Joint: 1})
	for i := range out {
		for j, v := range out[i] {
			if v != v {
				t.Fatalf("sequence %d, float %d is not a number", i, j)
			}
		}
	}
}

func TestInputErrors(t *testing.T) {
	m := minilmWith(t, available()[0])
	other, adapter := goldenModel(t, "random3", available()[0])
	one := func(ids ...int32) []Sequence { return []Sequence{{IDs: ids}} }
	for name, c := range map[string]struct {
		model *Model
		seqs  []Sequence
		o     Options
		want  string
	}{
		"empty sequence": {m, []Sequence{{IDs: []int32{101}}, {}}, Options{}, "sequence 1 is empty"},
		"too long":       {m, randomSequences(1, 513), Options{}, "513 tokens; the model takes at most 512"},
		"id too large":   {m, one(101, 30522), Options{}, "token 1: id 30522"},
		"negative id":    {m, one(-1), Options{}, "id -1"},
		"types missing":  {m, []Sequence{{IDs: []int32{1, 2}, Types: []int32{0}}}, Options{}, "2 tokens, but 1 types"},
		"type too large": {m, []Sequence{{IDs: []int32{1}, Types: []int32{2}}}, Options{}, "type 2"},
		"joint too deep": {m, one(101), Options{Joint: 7}, "joint is 7"},
		"negative joint": {m, one(101), Options{Joint: -1}, "joint is -1"},
		"other adapter":  {m, one(101), Options{Adapter: adapter}, "another model"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.model.Forward(context.Background(), c.seqs, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if out, err := other.Forward(context.Background(), nil, Options{}); err != nil || len(out) != 0 {
		t.Errorf("no sequences: %v, %v; want nothing", out, err)
	}
	if out, err := other.Forward(context.Background(), nil, Options{Joint: 1}); err != nil || len(out) != 0 {
		t.Errorf("no sequences, joint: %v, %v; want nothing", out, err)
	}
}

func TestCancel(t *testing.T) {
	m := minilmWith(t, available()[0])
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, joint := range []int{0, 1} {
		if _, err := m.Forward(ctx, randomSequences(9, 100), Options{Joint: joint}); !errors.Is(err, context.Canceled) {
			t.Errorf("joint %d: error %v, want context.Canceled", joint, err)
		}
	}
}

// Many goroutines on one model disturb each other in nothing (run with -race),
// and no goroutine is left behind.
func TestConcurrentUse(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m, adapter := goldenModel(t, "random3", available()[0])
	seqs := []Sequence{{IDs: []int32{2, 9, 8, 7, 3}}, {IDs: []int32{2, 30, 3}}}
	kinds := []Options{{}, {Joint: 2}, {Adapter: adapter}, {Adapter: adapter, Joint: 1}}
	want := make([][][]float32, len(kinds))
	for i, o := range kinds {
		want[i] = mustForward(t, m, seqs, o)
	}
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for n := range 20 {
				i := (g + n) % len(kinds)
				out, err := m.Forward(context.Background(), seqs, kinds[i])
				if err != nil || !slices.EqualFunc(out, want[i], slices.Equal) {
					t.Errorf("options %d: other states than alone (error %v)", i, err)
				}
			}
		})
	}
	group.Wait()
}
