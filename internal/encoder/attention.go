package encoder

import "math"

// attend computes softmax(Q K^T / sqrt d) V for each head, every row of a span
// attending to all rows of it. Scores exist for a few rows at a time only, so
// memory grows with the length of a span and not with its square.
func (p *pass) attend(qkv, out []float32, spans []span) {
	heads := p.model.config.Heads
	// A task is one head of one span, or a part of its rows when tasks are few.
	parts := 1
	if tasks := len(spans) * heads; tasks < 2*p.workers {
		parts = (2*p.workers + tasks - 1) / tasks
	}
	parallel(p.workers, len(spans)*heads*parts, func(worker, task int) {
		s := spans[task/parts/heads]
		per := roundUp((s.to-s.from+parts-1)/parts, p.model.kernels.rows)
		first := s.from + task%parts*per
		last := min(first+per, s.to)
		if first < last {
			p.attendHead(qkv, out, s, first, last, task/parts%heads, &p.ws.workers[worker])
		}
	})
}

// attendHead computes rows [first, last) of one head, within the span s.
func (p *pass) attendHead(qkv, out []float32, s span, first, last, head int, sc *scratch) {
	k := p.model.kernels
	hidden := p.model.config.Hidden
	size := hidden / p.model.config.Heads
	stride := 3 * hidden
	n := s.to - s.from
	queries := qkv[head*size:]
	keys := p.keyPanels(qkv[hidden+head*size:], s, size, sc)
	values, width := p.valuePanels(qkv[2*hidden+head*size:], s, size, sc)

	padded := roundUp(n, max(16, k.cols))
	scores := grow(&sc.scores, k.rows*padded)
	tile := grow(&sc.out, k.rows*width)
	zero := zeros[:k.cols]
	for i := first; i < last; i += k.rows {
		rows := min(k.rows, last-i)
		for j := 0; j < n; j += k.cols {
			k.gemm(rows, size, queries[i*stride:], stride, keys[j*size:], zero, 0, scores[j:], padded)
		}
		var sums [maxRows]float32
		for r := range rows {
			sums[r] = k.softmax(scores[r*padded:][:n:padded])
		}
		for j := 0; j < width; j += k.cols {
			k.gemm(rows, n, scores, padded, values[j*n:], zero, 0, tile[j:], width)
		}
		for r := range rows {
			inverse := 1 / sums[r]
			for j, v := range tile[r*width:][:size] {
				out[(i+r)*hidden+head*size+j] = v * inverse
			}
		}
	}
}

// maxRows is the most rows of any kernel; zeros is a start for any panel.
const maxRows = 16

var zeros [64]float32

// keyPanels lays the keys of one head out as panels, scaled by 1/sqrt(size):
// a column for each row of the span, zeros up to a whole panel.
func (p *pass) keyPanels(keys []float32, s span, size int, sc *scratch) []float32 {
	cols := p.model.kernels.cols
	stride := 3 * p.model.config.Hidden
	scale := float32(1 / math.Sqrt(float64(size)))
	n := s.to - s.from
	panels := grow(&sc.keys, roundUp(n, cols)*size)
	clear(panels[n/cols*cols*size:]) // the last panel may be partly empty
	for i := range n {
		panel := panels[i/cols*cols*size:]
		j := i % cols
		for _, v := range keys[(s.from+i)*stride:][:size] {
			panel[j] = v * scale
			j += cols
		}
	}
	return panels
}

// valuePanels lays the values of one head out as panels: a column for each of
// the head's floats, zeros up to width, which is a whole number of panels.
func (p *pass) valuePanels(values []float32, s span, size int, sc *scratch) (panels []float32, width int) {
	cols := p.model.kernels.cols
	stride := 3 * p.model.config.Hidden
	n := s.to - s.from
	width = roundUp(size, cols)
	panels = grow(&sc.values, width*n)
	for i := range n {
		row := values[(s.from+i)*stride:][:size]
		for j := 0; j < width; j += cols {
			to := panels[j*n+i*cols:][:cols]
			clear(to[copy(to, row[min(j, size):min(j+cols, size)]):])
		}
	}
	return panels, width
}
