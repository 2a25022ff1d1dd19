package encoder

// linear is a dense layer, y = x W^T + b, with W cut into panels: for each
// group of cols outputs, the weights of all inputs lie together, input by
// input, as gemm reads them.
type linear struct {
	in, out int
	bias    []float32

	// Either floats, or int8 with a scale for each output.
	floats []float32
	bytes  []int8
	scale  []float32
}

// pack cuts rows of W (each of in weights) into panels of cols columns; the
// first row becomes column first of dst. Columns that no row fills stay zero.
func pack[T float32 | int8](dst, rows []T, in, first, cols int) {
	for r := 0; r*in < len(rows); r++ {
		panel := dst[(first+r)/cols*cols*in:]
		j := (first + r) % cols
		for _, v := range rows[r*in:][:in] {
			panel[j] = v
			j += cols
		}
	}
}

// panel gives the floats of the panel that starts at column, widened into
// scratch when the weights are int8.
func (l *linear) panel(k *kernels, column int, scratch []float32) []float32 {
	from, size := column*l.in, k.cols*l.in
	if l.bytes == nil {
		return l.floats[from:][:size]
	}
	k.widen(scratch[:size], l.bytes[from:][:size], l.scale[column:][:k.cols])
	return scratch[:size]
}

// tile computes columns [from, to) of y for n rows of x, both multiples of
// k.cols. Strides are the layers' widths. The low-rank side path is added when
// there is one; side then holds its inner products for the same rows.
func (l *linear) tile(k *kernels, n, from, to int, x, y []float32, lora *lowRank, side, scratch []float32) {
	for column := from; column < to; column += k.cols {
		panel := l.panel(k, column, scratch)
		up := lora.at(column)
		for i := 0; i < n; i += k.rows {
			rows := min(k.rows, n-i)
			out := y[i*l.out+column:]
			k.gemm(rows, l.in, x[i*l.in:], l.in, panel, l.bias[column:], 0, out, l.out)
			if up != nil {
				k.gemm(rows, up.rank, side[i*lora.width+up.offset:], lora.width, up.panel(k, column), out, l.out, out, l.out)
			}
		}
	}
}
