//go:build arm64 && !purego

package encoder

// available lists the implementations that run on this machine, best first.
// Every arm64 processor that Go supports has NEON.
func available() []*kernels { return []*kernels{kernelsNEON, portable} }

// kernelsNEON has the products in assembly; the elementwise loops, a small
// part of the time, are plain Go.
var kernelsNEON = &kernels{
	name: "NEON",
	rows: 8,
	cols: 8,
	gemm: checkedGemm(8, []gemmFunc{
		gemmNEON_1, gemmNEON_2, gemmNEON_3, gemmNEON_4, gemmNEON_5, gemmNEON_6, gemmNEON_7, gemmNEON_8,
	}),
	widen:   checkedWiden(8, widenNEON),
	softmax: softmaxPortable,
	gelu:    geluPortable,
	addNorm: addNormPortable,
}
