package encoder

import (
	"context"
	"fmt"
	"slices"

	"github.com/askback/askback/internal/stopwatch"
)

// Sequence is one input of the model.
type Sequence struct {
	IDs   []int32 // token ids, special tokens included; 1 to MaxTokens of them
	Types []int32 // the type of each token; nil: all 0
}

// Options changes how Forward runs.
type Options struct {
	// Adapter is applied beside the base weights; nil: the bare base.
	Adapter *Adapter

	// Joint is the number of layers, counted from the last, in which each
	// token attends to the tokens of all sequences of the call; 0: each
	// sequence alone. In the layers before, and in its positions, each
	// sequence stands for itself.
	Joint int
}

const (
	// A group of sequences goes through the whole model together. Below
	// minGroup tokens the weights are unpacked too often for the work they do.
	minGroup = 360

	// blockRows rows of activations stay in a core's cache while a linear
	// layer's panels pass over them. It is a multiple of every kernel's rows.
	blockRows = 360

	// minTask is the least work worth handing to another goroutine, in
	// multiplications.
	minTask = 1 << 18
)

// Forward gives the last hidden states: for each sequence a slice of
// len(IDs)*Hidden floats, token by token. Equal sequences give equal states
// whatever stands beside them, unless Joint ties them together. It uses the
// cores that no other call of the model uses, and waits for one if there is
// none, so that many calls at once take little more memory than one a core.
// It stops between layers when ctx ends, with its error.
func (m *Model) Forward(ctx context.Context, seqs []Sequence, o Options) ([][]float32, error) {
	if err := m.checkInput(seqs, o); err != nil {
		return nil, err
	}
	if len(seqs) == 0 {
		return nil, ctx.Err()
	}
	if o.Joint > 0 {
		return m.run(ctx, seqs, o, cap(m.cores))
	}
	return m.runApart(ctx, seqs, o)
}

func (m *Model) checkInput(seqs []Sequence, o Options) error {
	c := &m.config
	if o.Joint < 0 || o.Joint > c.Layers {
		return fmt.Errorf("joint is %d; the model has %d layers", o.Joint, c.Layers)
	}
	if o.Adapter != nil && o.Adapter.model != m {
		return fmt.Errorf("the adapter was loaded for another model than %s", c.Name)
	}
	for i, s := range seqs {
		switch {
		case len(s.IDs) == 0:
			return fmt.Errorf("sequence %d is empty", i)
		case len(s.IDs) > c.MaxTokens:
			return fmt.Errorf("sequence %d has %d tokens; the model takes at most %d", i, len(s.IDs), c.MaxTokens)
		case s.Types != nil && len(s.Types) != len(s.IDs):
			return fmt.Errorf("sequence %d has %d tokens, but %d types", i, len(s.IDs), len(s.Types))
		}
		for j, id := range s.IDs {
			if id < 0 || int(id) >= c.Vocabulary {
				return fmt.Errorf("sequence %d, token %d: id %d is not in the vocabulary of %d", i, j, id, c.Vocabulary)
			}
		}
		for j, t := range s.Types {
			if t < 0 || int(t) >= c.Types {
				return fmt.Errorf("sequence %d, token %d: type %d; the model has %d types", i, j, t, c.Types)
			}
		}
	}
	return nil
}

// runApart sends sequences that do not see each other through the model in
// groups: several groups at once on one core each, or, when there are too few
// for that, one after another on all cores.
func (m *Model) runApart(ctx context.Context, seqs []Sequence, o Options) ([][]float32, error) {
	var groups [][]Sequence
	for rest := seqs; len(rest) > 0; {
		n, tokens := 0, 0
		for n < len(rest) && tokens < minGroup {
			tokens += len(rest[n].IDs)
			n++
		}
		groups = append(groups, rest[:n])
		rest = rest[n:]
	}
	workers, within := cap(m.cores), 1
	if len(groups) < 2*workers {
		workers, within = 1, workers
	}
	states := make([][][]float32, len(groups))
	errs := make([]error, len(groups))
	parallel(workers, len(groups), func(_, i int) {
		states[i], errs[i] = m.run(ctx, groups[i], o, within)
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(states...), nil
}

// take waits for a core and takes up to most of those that are free then.
// Who waits longest is served first. The wait does not count for a limit of
// stopwatch.
func (m *Model) take(ctx context.Context, most int) (cores int, err error) {
	select {
	case m.cores <- struct{}{}:
	default:
		resume := stopwatch.Pause(ctx)
		defer resume()
		select {
		case m.cores <- struct{}{}:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	for cores = 1; cores < most; cores++ {
		select {
		case m.cores <- struct{}{}:
		default:
			return cores, nil
		}
	}
	return cores, nil
}

func (m *Model) give(cores int) {
	for range cores {
		<-m.cores
	}
}

// workspace holds the intermediate values of one run.
type workspace struct {
	qkv, attended, wide, side []float32
	workers                   []scratch
}

// scratch is what one goroutine needs for itself.
type scratch struct {
	panel               []float32 // a widened panel
	keys, values        []float32 // panels of one head
	scores, out, summed []float32
}

// grow gives a slice of n floats, reusing the memory of *s. Its content is
// arbitrary.
func grow(s *[]float32, n int) []float32 {
	*s = slices.Grow((*s)[:0], n)[:n]
	return *s
}

// run sends the sequences through all layers, all of them at once, on up to
// workers cores, and gives their last hidden states.
func (m *Model) run(ctx context.Context, seqs []Sequence, o Options, workers int) ([][]float32, error) {
	workers, err := m.take(ctx, workers)
	if err != nil {
		return nil, err
	}
	defer m.give(workers)
	ws := m.pool.Get().(*workspace)
	defer m.pool.Put(ws)
	if len(ws.workers) < workers {
		ws.workers = make([]scratch, workers)
	}

	hidden := m.config.Hidden
	rows := 0
	for _, s := range seqs {
		rows += len(s.IDs)
	}
	x := make([]float32, rows*hidden)
	out := make([][]float32, 0, len(seqs))
	apart := make([]span, 0, len(seqs))
	at := 0
	for _, s := range seqs {
		to := at + len(s.IDs)
		out = append(out, x[at*hidden:to*hidden:to*hidden])
		apart = append(apart, span{at, to})
		m.embed(s, x[at*hidden:], ws)
		at = to
	}
	joint := []span{{0, rows}}

	p := pass{model: m, ws: ws, rows: rows, workers: workers}
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		spans := apart
		if i >= len(m.layers)-o.Joint {
			spans = joint
		}
		var lora *layerLoRA
		if o.Adapter != nil {
			lora = &o.Adapter.layers[i]
		}
		p.layer(&m.layers[i], lora, x, spans)
	}
	return out, ctx.Err()
}

// embed fills x with the sum of each token's word, type and position vectors,
// normalised.
func (m *Model) embed(s Sequence, x []float32, ws *workspace) {
	hidden := m.config.Hidden
	v := grow(&ws.workers[0].summed, hidden)
	for i, id := range s.IDs {
		kind := 0
		if s.Types != nil {
			kind = int(s.Types[i])
		}
		t := m.types[kind*hidden:][:hidden]
		if m.wordBytes != nil {
			scale := m.wordScale[id]
			for j, b := range m.wordBytes[int(id)*hidden:][:hidden] {
				v[j] = float32(b)*scale + t[j]
			}
		} else {
			for j, w := range m.words[int(id)*hidden:][:hidden] {
				v[j] = w + t[j]
			}
		}
		m.kernels.addNorm(x[i*hidden:][:hidden], v, m.positions[i*hidden:][:hidden], m.normGain, m.normBias, m.config.NormEpsilon)
	}
}

// span is a range of rows that attend to each other.
type span struct{ from, to int }

// pass carries what the steps of one run share.
type pass struct {
	model   *Model
	ws      *workspace
	rows    int
	workers int
}

// layer applies one transformer block to x, in place.
func (p *pass) layer(l *layer, lora *layerLoRA, x []float32, spans []span) {
	if lora == nil {
		lora = &layerLoRA{}
	}
	qkv := grow(&p.ws.qkv, p.rows*l.qkv.out)
	attended := grow(&p.ws.attended, p.rows*l.attended.out)
	p.linear(&l.qkv, lora.qkv, x, qkv, false)
	p.attend(qkv, attended, spans)

	y := qkv[:len(x)] // the projections are used up
	p.linear(&l.attended, lora.attended, attended, y, false)
	p.addNorm(x, y, l.norm1Gain, l.norm1Bias)

	wide := grow(&p.ws.wide, p.rows*l.up.out)
	p.linear(&l.up, lora.up, x, wide, true)
	p.linear(&l.down, lora.down, wide, y, false)
	p.addNorm(x, y, l.norm2Gain, l.norm2Bias)
}

// linear computes y = l(x), through GELU if asked, cut into blocks of rows and,
// when these are too few for the workers, groups of columns.
func (p *pass) linear(l *linear, lora *lowRank, x, y []float32, gelu bool) {
	k := p.model.kernels
	var side []float32
	if lora != nil {
		side = grow(&p.ws.side, p.rows*lora.width)
		p.linear(&lora.down, nil, x, side, false)
	}

	blocks := (p.rows + blockRows - 1) / blockRows
	perBlock := roundUp((p.rows+blocks-1)/blocks, k.rows)
	blocks = (p.rows + perBlock - 1) / perBlock
	panels := l.out / k.cols
	groups := 1
	if p.workers > 1 {
		// A few tasks for each worker even out what else the machine does.
		useful := p.rows * l.in * l.out / minTask
		groups = min(panels, max(1, min(3*p.workers, useful)/blocks))
	}
	parallel(p.workers, blocks*groups, func(worker, task int) {
		block, group := task/groups, task%groups
		from := block * perBlock
		n := min(perBlock, p.rows-from)
		first, last := group*panels/groups*k.cols, (group+1)*panels/groups*k.cols
		scratch := grow(&p.ws.workers[worker].panel, l.in*k.cols)
		var rowSide []float32
		if lora != nil {
			rowSide = side[from*lora.width:]
		}
		out := y[from*l.out:]
		l.tile(k, n, first, last, x[from*l.in:], out, lora, rowSide, scratch)
		if gelu {
			for i := range n {
				k.gelu(out[i*l.out:][first:last])
			}
		}
	})
}

// addNorm sets x = norm(x + y), row by row.
func (p *pass) addNorm(x, y, gain, bias []float32) {
	c := &p.model.config
	const block = 64 // rows
	parallel(p.workers, (p.rows+block-1)/block, func(_, task int) {
		for i := task * block; i < min((task+1)*block, p.rows); i++ {
			row := x[i*c.Hidden:][:c.Hidden]
			p.model.kernels.addNorm(row, row, y[i*c.Hidden:][:c.Hidden], gain, bias, c.NormEpsilon)
		}
	})
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }
