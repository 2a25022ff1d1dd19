package local

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// blockRows is the number of vectors in a block: a block of 384-dimensional ones
// is 1.5 MiB, and growing never moves those there are.
const blockRows = 1024

// dense holds unit vectors by slot, each padded with zeros to a multiple of
// dotLanes.
type dense struct {
	dim    int // 0 until the first vector is known
	stride int
	blocks [][]float32
	n      int
}

// dotLanes is the number of products that dots takes at a time.
const dotLanes = 32

func (d *dense) setDim(dim int) {
	d.dim = dim
	d.stride = (dim + dotLanes - 1) / dotLanes * dotLanes
}

// add puts a vector into the next slot.
func (d *dense) add(vector []float32) {
	if d.n%blockRows == 0 {
		d.blocks = append(d.blocks, make([]float32, 0, blockRows*d.stride))
	}
	block := &d.blocks[d.n/blockRows]
	start := len(*block)
	*block = (*block)[:start+d.stride]
	copy((*block)[start:], vector)
	d.n++
}

// at gives the vector in a slot, without the padding.
func (d *dense) at(slot int32) []float32 {
	start := int(slot) % blockRows * d.stride
	return d.blocks[slot/blockRows][start : start+d.dim : start+d.dim]
}

// cosines gives the inner product of a unit vector with each slot's, exactly,
// on all processors if there is enough work for them.
func (d *dense) cosines(query []float32) []float32 {
	padded := make([]float32, d.stride)
	copy(padded, query)
	out := make([]float32, d.n)
	var next atomic.Int32
	scan := func() {
		for {
			b := int(next.Add(1)) - 1
			if b >= len(d.blocks) {
				return
			}
			first := b * blockRows
			dots(padded, d.blocks[b], out[first:min(first+blockRows, d.n)])
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(d.blocks)) - 1 {
		wg.Go(scan)
	}
	scan()
	wg.Wait()
	return out
}

// dotsGeneric sets out[i] to the inner product of query and the i-th row of
// rows, whose rows have the length of query, a multiple of dotLanes.
func dotsGeneric(query, rows, out []float32) {
	n := len(query)
	for i := range out {
		row := rows[i*n : (i+1)*n]
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for j := 0; j+8 <= len(row) && j+8 <= len(query); j += 8 {
			a, b := row[j:j+8:j+8], query[j:j+8:j+8]
			s0 += a[0] * b[0]
			s1 += a[1] * b[1]
			s2 += a[2] * b[2]
			s3 += a[3] * b[3]
			s4 += a[4] * b[4]
			s5 += a[5] * b[5]
			s6 += a[6] * b[6]
			s7 += a[7] * b[7]
		}
		out[i] = (s0 + s4) + (s1 + s5) + (s2 + s6) + (s3 + s7)
	}
}

// top gives the slots of the k highest scores that ok allows, best first; before
// puts slots with equal scores in order.
func top(scores []float32, k int, ok func(slot int32) bool, before func(a, b int32) bool) []int32 {
	if k <= 0 {
		return nil
	}
	heap := make([]int32, 0, min(k, len(scores))) // the worst at the root
	worse := func(a, b int32) bool {
		return scores[a] < scores[b] || scores[a] == scores[b] && before(b, a)
	}
	down := func(i, n int) {
		for {
			c := 2*i + 1
			if c >= n {
				return
			}
			if c+1 < n && worse(heap[c+1], heap[c]) {
				c++
			}
			if !worse(heap[c], heap[i]) {
				return
			}
			heap[i], heap[c] = heap[c], heap[i]
			i = c
		}
	}
	for i, score := range scores {
		slot := int32(i)
		if len(heap) == k {
			if score < scores[heap[0]] || !ok(slot) || !worse(heap[0], slot) {
				continue
			}
			heap[0] = slot
			down(0, k)
			continue
		}
		if !ok(slot) {
			continue
		}
		heap = append(heap, slot)
		for c := len(heap) - 1; c > 0; {
			p := (c - 1) / 2
			if !worse(heap[c], heap[p]) {
				break
			}
			heap[c], heap[p] = heap[p], heap[c]
			c = p
		}
	}
	for n := len(heap) - 1; n > 0; n-- {
		heap[0], heap[n] = heap[n], heap[0]
		down(0, n)
	}
	return heap
}
