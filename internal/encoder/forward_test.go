package encoder

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/askback/askback/internal/stopwatch"
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
	for _, joint := range []int{0, 4} {
		var first, assembly [][]float32
		for _, k := range available() {
			m := minilmWith(t, k)
			seqs := slices.Concat(randomSequences(m, 3, 37), randomSequences(m, 1, 110))
			got := mustForward(t, m, seqs, Options{Joint: joint})
			if k != portable {
				if assembly != nil && !slices.EqualFunc(got, assembly, slices.Equal) {
					t.Errorf("joint %d: the assembly versions differ in some bits", joint)
				}
				assembly = got
			}
			if first == nil {
				first = got
			}
			for i := range got {
				for j := range got[i] {
					if math.Abs(float64(got[i][j]-first[i][j])) > 1e-5 {
						t.Fatalf("joint %d, %s: sequence %d, float %d is %g, not %g", joint, k.name, i, j, got[i][j], first[i][j])
					}
				}
			}
		}
	}
}

// The states of a sequence do not depend on its neighbours.
func TestSequencesStandAlone(t *testing.T) {
	m, _ := goldenModel(t, "random3", available()[0])
	seqs := slices.Concat(randomSequences(m, 40, 11), randomSequences(m, 9, 48), randomSequences(m, 1, 1))
	together := mustForward(t, m, seqs, Options{})
	for i := range seqs {
		alone := mustForward(t, m, seqs[i:i+1], Options{})
		if !slices.Equal(together[i], alone[0]) {
			t.Errorf("sequence %d has other states in company than alone", i)
		}
	}
}

// The number of cores changes nothing.
func TestWorkers(t *testing.T) {
	small, adapter := goldenModel(t, "random3", available()[0])
	base := minilmWith(t, available()[0])
	for name, c := range map[string]struct {
		model *Model
		seqs  []Sequence
		o     Options
	}{
		"many sequences":  {small, randomSequences(small, 40, 30), Options{}},
		"with an adapter": {small, randomSequences(small, 5, 30), Options{Adapter: adapter}},
		"joint":           {small, randomSequences(small, 20, 40), Options{Joint: 2}},
		"a short text":    {base, randomSequences(base, 1, 20), Options{}},
		"one token":       {base, randomSequences(base, 1, 1), Options{Joint: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			want := slices.Concat(mustForward(t, c.model, c.seqs, c.o)...)
			defer func(cores chan struct{}) { c.model.cores = cores }(c.model.cores)
			for _, cores := range []int{1, 2, 3, 16} {
				c.model.cores = make(chan struct{}, cores)
				if got := slices.Concat(mustForward(t, c.model, c.seqs, c.o)...); !slices.Equal(got, want) {
					t.Errorf("%d cores give other states", cores)
				}
				if n := len(c.model.cores); n != 0 {
					t.Errorf("of %d cores %d are still taken", cores, n)
				}
			}
		})
	}
}

// With joint layers a sequence sees its neighbours, in any order of them.
func TestJoint(t *testing.T) {
	m, _ := goldenModel(t, "random3", available()[0])
	seqs := randomSequences(m, 5, 30)
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
}

// Attention over 2,000 tokens.
func TestJointOverManyTokens(t *testing.T) {
	m, _ := goldenModel(t, "random3", available()[0])
	seqs := slices.Repeat(randomSequences(m, 1, 48), 42)
	out := mustForward(t, m, seqs, Options{Joint: 3})
	alone := mustForward(t, m, seqs[:1], Options{})
	for i := range out {
		for j, v := range out[i] {
			// Attention over copies is attention over one of them.
			if !(math.Abs(float64(v-alone[0][j])) <= 1e-5) {
				t.Fatalf("sequence %d, float %d is %g among its copies and %g alone", i, j, v, alone[0][j])
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
		"too long":       {m, randomSequences(m, 1, 513), Options{}, "513 tokens; the model takes at most 512"},
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
		if _, err := m.Forward(ctx, randomSequences(m, 9, 100), Options{Joint: joint}); !errors.Is(err, context.Canceled) {
			t.Errorf("joint %d: error %v, want context.Canceled", joint, err)
		}
	}
}

// While every core is taken a call waits, and its context ends the waiting; as soon
// as one is free it goes on.
func TestWaitsForACore(t *testing.T) {
	m := minilmWith(t, available()[0])
	seqs := randomSequences(m, 1, 20)
	taken, err := m.take(context.Background(), cap(m.cores)+1)
	if err != nil || taken != cap(m.cores) {
		t.Fatalf("took %d cores of %d (error %v)", taken, cap(m.cores), err)
	}
	for _, joint := range []int{0, 1} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if _, err := m.Forward(ctx, seqs, Options{Joint: joint}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("joint %d: error %v, want context.DeadlineExceeded", joint, err)
		}
		cancel()
	}
	// Nor does the wait use up a limit: its deadline moves.
	ctx, cancel := stopwatch.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	before, _ := ctx.Deadline()
	done := make(chan error)
	go func() {
		_, err := m.Forward(ctx, seqs, Options{})
		done <- err
	}()
	for now := before; now.Equal(before); now, _ = ctx.Deadline() {
		time.Sleep(time.Millisecond)
	}
	m.give(taken)
	if err := <-done; err != nil {
		t.Error(err)
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
