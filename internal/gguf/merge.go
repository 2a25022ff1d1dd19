package gguf

import (
	"fmt"
	"maps"
	"slices"
)

// Merge gives the base model with the adapter added to its weights: W + scale ·
// B·A, computed row by row as they are read. It takes the base's metadata and
// its files: closing it closes the base.
func Merge(base *Model, l *LoRA) (*Model, error) {
	s, err := base.Shape()
	if err != nil {
		return nil, err
	}
	if s != l.shape {
		return nil, fmt.Errorf("merging the adapter: it was laid out for %+v, and the base model is %+v", l.shape, s)
	}
	out := &Model{Metadata: base.Metadata, Tensors: slices.Clone(base.Tensors), files: base.files}
	missing := maps.Clone(l.pairs)
	for i, t := range out.Tensors {
		p, ok := l.pairs[t.Name]
		if !ok {
			continue
		}
		delete(missing, t.Name)
		if len(t.Dims) != 2 || t.Width() != p.width || t.Rows() != p.rows {
			return nil, fmt.Errorf("merging the adapter: the base model's %s has the sides %v instead of %d and %d", t.Name, t.Dims, p.width, p.rows)
		}
		scale := float32(l.Adapter.Alpha / float64(p.rank))
		out.Tensors[i].rows = func(dst []float32, from int) error {
			if err := t.rows(dst, from); err != nil {
				return err
			}
			p.add(dst, from, scale)
			return nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		return nil, fmt.Errorf("merging the adapter: the base model has no tensor %s", name)
	}
	return out, nil
}

// add adds scale · B·A to rows of the weights, four rows of A at a time.
func (p pair) add(rows []float32, from int, scale float32) {
	for i := 0; len(rows) > 0; i++ {
		row := rows[:p.width]
		rows = rows[p.width:]
		b := p.b[(from+i)*p.rank : (from+i+1)*p.rank]
		k := 0
		for ; k+4 <= len(b); k += 4 {
			a := p.a[k*p.width:]
			a0, a1, a2, a3 := a[:len(row)], a[p.width:][:len(row)], a[2*p.width:][:len(row)], a[3*p.width:][:len(row)]
			b0, b1, b2, b3 := scale*b[k], scale*b[k+1], scale*b[k+2], scale*b[k+3]
			for j := range row {
				row[j] += b0*a0[j] + b1*a1[j] + b2*a2[j] + b3*a3[j]
			}
		}
		for ; k < len(b); k++ {
			factor := scale * b[k]
			for j, a := range p.a[k*p.width:][:len(row)] {
				row[j] += factor * a
			}
		}
	}
}
