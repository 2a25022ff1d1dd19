package encoder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachKernels runs a test for every implementation that this machine has.
func eachKernels(t *testing.T, f func(t *testing.T, k *kernels)) {
	for _, k := range available() {
		t.Run(k.name, func(t *testing.T) { f(t, k) })
	}
}

func randomFloats(r *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * scale)
	}
	return x
}

func wantNear(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.9g, want %.9g within %g", what, got, want, tolerance)
	}
}

func TestGemm(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(1, 1))
		for rows := 1; rows <= k.rows; rows++ {
			for _, inner := range []int{1, 2, 3, 4, 5, 7, 8, 17, 384} {
				lda, ldc := inner+3, k.cols+5
				a := randomFloats(r, rows*lda, 1)
				panel := randomFloats(r, inner*k.cols, 1)
				bias := randomFloats(r, k.cols, 1)
				c := randomFloats(r, rows*ldc, 1)
				before := append([]float32(nil), c...)
				k.gemm(rows, inner, a, lda, panel, bias, 0, c, ldc)
				k.gemm(rows, inner, a, lda, panel, c, ldc, c, ldc) // twice the product, one bias
				for i := range rows {
					for j := range ldc {
						if j >= k.cols {
							if c[i*ldc+j] != before[i*ldc+j] {
								t.Fatalf("rows %d: column %d beyond the panel was overwritten", rows, j)
							}
							continue
						}
						want := float64(bias[j])
						for n := range inner {
							want += 2 * float64(a[i*lda+n]) * float64(panel[n*k.cols+j])
						}
						wantNear(t, fmt.Sprintf("rows %d, k %d: c[%d][%d]", rows, inner, i, j), float64(c[i*ldc+j]), want, 1e-6*float64(10+inner))
					}
				}
			}
		}
	})
}

func TestWiden(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		src := make([]int8, 3*k.cols)
		scale := make([]float32, k.cols)
		for i := range src {
			src[i] = int8(i*37 - 128)
		}
		for j := range scale {
			scale[j] = float32(j+1) / 64
		}
		dst := make([]float32, len(src))
		k.widen(dst, src, scale)
		for i := range dst {
			if want := float32(src[i]) * scale[i%k.cols]; dst[i] != want {
				t.Fatalf("dst[%d] = %g, want %g", i, dst[i], want)
			}
		}
	})
}

func TestSoftmax(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(2, 2))
		for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 120, 2000} {
			for _, scale := range []float64{0.1, 3, 60} {
				padded := roundUp(n, 16)
				x := randomFloats(r, padded, scale)
				want := make([]float64, n)
				top := math.Inf(-1)
				for _, v := range x[:n] {
					top = max(top, float64(v))
				}
				var sum float64
				for i, v := range x[:n] {
					want[i] = math.Exp(float64(v) - top)
					sum += want[i]
				}
				got := k.softmax(x[:n:padded])
				wantNear(t, fmt.Sprintf("n %d: sum", n), float64(got)/sum, 1, 2e-6)
				for i := range want {
					wantNear(t, fmt.Sprintf("n %d: x[%d]", n, i), float64(x[i]), want[i], 4e-6*want[i]+1e-36)
				}
			}
		}
	})
}

func TestGELU(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		for _, n := range []int{1, 16, 18, 1000} {
			x := make([]float32, n)
			want := make([]float64, n)
			for i := range x {
				v := 24*(float64(i)+0.5)/float64(n) - 12
				x[i] = float32(v)
				v = float64(x[i])
				want[i] = v * (1 + math.Erf(v/math.Sqrt2)) / 2
			}
			k.gelu(x)
			for i := range x {
				wantNear(t, fmt.Sprintf("n %d: x[%d]", n, i), float64(x[i]), want[i], 1e-6)
			}
		}
	})
}

func TestAddNorm(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(3, 3))
		for _, n := range []int{32, 64, 384} {
			x, y := randomFloats(r, n, 2), randomFloats(r, n, 2)
			for i := range x {
				x[i] += 50 // a mean far from zero costs no digits
			}
			gain, bias := randomFloats(r, n, 1), randomFloats(r, n, 1)
			const eps = 1e-5
			var mean, variance float64
			for i := range x {
				mean += (float64(x[i]) + float64(y[i])) / float64(n)
			}
			for i := range x {
				d := float64(x[i]) + float64(y[i]) - mean
				variance += d * d / float64(n)
			}
			want := make([]float64, n)
			for i := range want {
				want[i] = (float64(x[i])+float64(y[i])-mean)/math.Sqrt(variance+eps)*float64(gain[i]) + float64(bias[i])
			}
			k.addNorm(x, x, y, gain, bias, eps)
			for i := range want {
				wantNear(t, fmt.Sprintf("n %d: x[%d]", n, i), float64(x[i]), want[i], 2e-5)
			}
		}
	})
}
