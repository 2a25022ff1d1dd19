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

// add adds scale · B·A to rows of the weights.
func (p pair) add(rows []float32, from int, scale float32) {
	for i := 0; len(rows) > 0; i++ {
		row := rows[:p.width]
		rows = rows[p.width:]
		for k, b := range p.b[(from+i)*p.rank : (from+i+1)*p.rank] {
			b *= scale
			for j, a := range p.a[k*p.width : (k+1)*p.width] {
				row[j] += b * a
			}
		}
	}
}
