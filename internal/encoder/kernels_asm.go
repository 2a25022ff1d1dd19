//go:build (amd64 || arm64) && !purego

package encoder

// gemmFunc is a gemm in assembly for a fixed number of rows.
type gemmFunc = func(k int, a *float32, lda int, panel *float32, start *float32, lds int, c *float32, ldc int)

// checkedGemm makes one gemm of functions listed by their number of rows, from
// 1, and checks bounds before them, which assembly does not.
func checkedGemm(cols int, byRows []gemmFunc) func(rows, k int, a []float32, lda int, panel, start []float32, lds int, c []float32, ldc int) {
	return func(rows, k int, a []float32, lda int, panel, start []float32, lds int, c []float32, ldc int) {
		last := rows - 1
		_ = a[last*lda+k-1]
		_ = panel[k*cols-1]
		_ = start[last*lds+cols-1]
		_ = c[last*ldc+cols-1]
		byRows[last](k, &a[0], lda, &panel[0], &start[0], lds, &c[0], ldc)
	}
}

// checkedWiden checks bounds before a widen in assembly.
func checkedWiden(cols int, widen func(k int, dst *float32, src *int8, scale *float32)) func(dst []float32, src []int8, scale []float32) {
	return func(dst []float32, src []int8, scale []float32) {
		_ = dst[len(src)-1]
		_ = scale[cols-1]
		widen(len(src)/cols, &dst[0], &src[0], &scale[0])
	}
}
