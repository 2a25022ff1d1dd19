package encoder

import "math"

//go:generate go -C asm run . -out ../kernels_amd64.s -stubs ../stubs_amd64.go -pkg encoder
//go:generate go -C asm run ./neon -out ..

// kernels is one implementation of the inner loops. All slices are dense
// float32; offsets and strides count floats.
type kernels struct {
	name string
	rows int // the most rows of a gemm call
	cols int // the columns of a panel

	// gemm multiplies a few rows by one panel:
	//
	//	c[i*ldc+j] = start[i*lds+j] + sum over k of a[i*lda+k] * panel[k*cols+j]
	//
	// for i < rows and j < cols. A stride lds of 0 gives each row the same
	// start (a bias); start may be c itself, which accumulates.
	gemm func(rows, k int, a []float32, lda int, panel []float32, start []float32, lds int, c []float32, ldc int)

	// widen turns an int8 panel into floats: dst[k*cols+j] = src[k*cols+j] * scale[j].
	widen func(dst []float32, src []int8, scale []float32)

	// softmax turns x into exp(x - max x) and gives the sum, by which the
	// caller divides. x must have capacity up to the next multiple of 16; what
	// lies beyond its length is overwritten.
	softmax func(x []float32) float32

	// gelu applies x * (1 + erf(x/sqrt 2)) / 2 to each element.
	gelu func(x []float32)

	// addNorm is layer normalisation of a sum: dst = norm(x + y) * gain + bias,
	// with eps added to the variance. All slices are as long as dst, a multiple
	// of 32; dst may be x or y.
	addNorm func(dst, x, y, gain, bias []float32, eps float32)
}

// portable is the implementation in plain Go, for machines without an assembly
// one, and the reference for the others.
var portable = &kernels{
	name:    "portable",
	rows:    4,
	cols:    4,
	gemm:    gemmPortable,
	widen:   widenPortable,
	softmax: softmaxPortable,
	gelu:    geluPortable,
	addNorm: addNormPortable,
}

func gemmPortable(rows, k int, a []float32, lda int, panel, start []float32, lds int, c []float32, ldc int) {
	if rows == 4 {
		gemm4x4(k, a, lda, panel, start, lds, c, ldc)
		return
	}
	for i := range rows {
		s := start[i*lds:][:4]
		c0, c1, c2, c3 := s[0], s[1], s[2], s[3]
		b := panel[:4*k]
		for _, x := range a[i*lda:][:k] {
			c0 += x * b[0]
			c1 += x * b[1]
			c2 += x * b[2]
			c3 += x * b[3]
			b = b[4:]
		}
		out := c[i*ldc:][:4]
		out[0], out[1], out[2], out[3] = c0, c1, c2, c3
	}
}

// gemm4x4 keeps its 16 sums in registers.
func gemm4x4(k int, a []float32, lda int, panel, start []float32, lds int, c []float32, ldc int) {
	s0, s1, s2, s3 := start[:4], start[lds:][:4], start[2*lds:][:4], start[3*lds:][:4]
	c00, c01, c02, c03 := s0[0], s0[1], s0[2], s0[3]
	c10, c11, c12, c13 := s1[0], s1[1], s1[2], s1[3]
	c20, c21, c22, c23 := s2[0], s2[1], s2[2], s2[3]
	c30, c31, c32, c33 := s3[0], s3[1], s3[2], s3[3]
	a0, a1, a2, a3 := a[:k], a[lda:][:k], a[2*lda:][:k], a[3*lda:][:k]
	b := panel[:4*k]
	for i, x := range a0 {
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		c00 += x * b0
		c01 += x * b1
		c02 += x * b2
		c03 += x * b3
		x = a1[i]
		c10 += x * b0
		c11 += x * b1
		c12 += x * b2
		c13 += x * b3
		x = a2[i]
		c20 += x * b0
		c21 += x * b1
		c22 += x * b2
		c23 += x * b3
		x = a3[i]
		c30 += x * b0
		c31 += x * b1
		c32 += x * b2
		c33 += x * b3
		b = b[4:]
	}
	store := func(out []float32, x0, x1, x2, x3 float32) { out[0], out[1], out[2], out[3] = x0, x1, x2, x3 }
	store(c[:4], c00, c01, c02, c03)
	store(c[ldc:][:4], c10, c11, c12, c13)
	store(c[2*ldc:][:4], c20, c21, c22, c23)
	store(c[3*ldc:][:4], c30, c31, c32, c33)
}

func widenPortable(dst []float32, src []int8, scale []float32) {
	for len(src) > 0 {
		for j, s := range scale {
			dst[j] = float32(src[j]) * s
		}
		dst, src = dst[len(scale):], src[len(scale):]
	}
}

func softmaxPortable(x []float32) float32 {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		e := exp(v - top)
		x[i] = e
		sum += e
	}
	return sum
}

// exp gives e^x for x <= 0 within two units in the last place, by the
// polynomial of the Cephes library's expf. Below -87 it stays at e^-87.
func exp(x float32) float32 {
	x = max(x, -87)
	n := float32(math.RoundToEven(float64(x * math.Log2E)))
	r := x - n*0.693359375
	r += n * 2.12194440e-4
	p := float32(1.9875691500e-4)
	p = p*r + 1.3981999507e-3
	p = p*r + 8.3334519073e-3
	p = p*r + 4.1665795894e-2
	p = p*r + 1.6666665459e-1
	p = p*r + 5.0000001201e-1
	p = p*(r*r) + (r + 1)
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}

// geluPortable takes erf from Abramowitz and Stegun, Handbook of Mathematical
// Functions, 7.1.26, whose error is below 1.5e-7.
func geluPortable(x []float32) {
	for i, v := range x {
		size := max(v, -v)
		z := size * (1 / math.Sqrt2)
		t := 1 / (1 + 0.3275911*z)
		p := float32(1.061405429)
		p = p*t - 1.453152027
		p = p*t + 1.421413741
		p = p*t - 0.284496736
		p = p*t + 0.254829592
		tail := p * t * exp(-z*z) // 1 - erf(z)
		x[i] = max(v, 0) - 0.5*size*tail
	}
}

func addNormPortable(dst, x, y, gain, bias []float32, eps float32) {
	n := float32(len(dst))
	var sum float32
	for i := range dst {
		v := x[i] + y[i]
		dst[i] = v
		sum += v
	}
	mean := sum / n
	var squares float32
	for _, v := range dst {
		squares += (v - mean) * (v - mean)
	}
	inverse := 1 / float32(math.Sqrt(float64(squares/n+eps)))
	for i, v := range dst {
		dst[i] = (v-mean)*inverse*gain[i] + bias[i]
	}
}
