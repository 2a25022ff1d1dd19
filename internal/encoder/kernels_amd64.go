//go:build amd64 && !purego

package encoder

import "golang.org/x/sys/cpu"

// available lists the implementations that run on this machine, best first.
// The cpu package has asked the operating system too.
func available() []*kernels {
	var list []*kernels
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, kernelsAVX512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, kernelsAVX2)
	}
	return append(list, portable)
}

var kernelsAVX512 = assembled("AVX-512", 32, []gemmFunc{
	gemmAVX512_1, gemmAVX512_2, gemmAVX512_3, gemmAVX512_4, gemmAVX512_5, gemmAVX512_6,
	gemmAVX512_7, gemmAVX512_8, gemmAVX512_9, gemmAVX512_10, gemmAVX512_11, gemmAVX512_12,
}, widenAVX512, softmaxAVX512, geluAVX512, addNormAVX512)

var kernelsAVX2 = assembled("AVX2", 16, []gemmFunc{
	gemmAVX2_1, gemmAVX2_2, gemmAVX2_3, gemmAVX2_4, gemmAVX2_5, gemmAVX2_6,
}, widenAVX2, softmaxAVX2, geluAVX2, addNormAVX2)

// assembled puts bounds checks before assembly functions, which have none. The
// gemm functions are listed by their number of rows, from 1.
func assembled(name string, cols int, gemm []gemmFunc,
	widen func(k int, dst *float32, src *int8, scale *float32),
	softmax func(x *float32, n int) float32,
	gelu func(x *float32, n int),
	addNorm func(n int, dst, x, y, gain, bias *float32, eps float32),
) *kernels {
	const lanes = 16
	return &kernels{
		name:  name,
		rows:  len(gemm),
		cols:  cols,
		gemm:  checkedGemm(cols, gemm),
		widen: checkedWiden(cols, widen),
		softmax: func(x []float32) float32 {
			n := len(x)
			x = x[:roundUp(n, lanes)]
			for i := n; i < len(x); i++ {
				x[i] = -1e30 // e to this power adds nothing
			}
			return softmax(&x[0], len(x))
		},
		gelu: func(x []float32) {
			n := len(x) &^ (lanes - 1)
			if n > 0 {
				gelu(&x[0], n)
			}
			geluPortable(x[n:])
		},
		addNorm: func(dst, x, y, gain, bias []float32, eps float32) {
			n := len(dst)
			_, _, _, _ = x[n-1], y[n-1], gain[n-1], bias[n-1]
			addNorm(n, &dst[0], &x[0], &y[0], &gain[0], &bias[0], eps)
		},
	}
}
