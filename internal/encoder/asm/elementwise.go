package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lanes is 16 floats in one or two registers.
type lanes []VecVirtual

func (s isa) lanes() lanes {
	l := make(lanes, s.parts())
	for i := range l {
		l[i] = s.vec()
	}
	return l
}

func (s isa) zero() lanes {
	l := s.lanes()
	for _, v := range l {
		if s.wide {
			VPXORD(v, v, v)
		} else {
			VXORPS(v, v, v)
		}
	}
	return l
}

// mem is part i of the 16 floats at the base register.
func (s isa) mem(base Register, i int) Mem { return Mem{Base: base, Disp: i * s.bytes()} }

// loop16 runs f once for each 16 floats of n, a positive multiple of 16 whose
// register is used up, and moves the pointers along.
func loop16(label string, n Register, f func(), pointers ...Register) {
	Label(label)
	f()
	for _, p := range pointers {
		ADDQ(Imm(64), p)
	}
	SUBQ(Imm(16), n)
	JNE(LabelRef(label))
}

// fold reduces 16 lanes to one with op, in the same order for both widths, and
// gives a register whose first lane is the result.
func (s isa) fold(l lanes, op func(...Op)) VecVirtual {
	low := YMM()
	if s.wide {
		VEXTRACTF64X4(Imm(1), l[0], low)
		op(l[0].AsY(), low, low)
	} else {
		op(l[0], l[1], low)
	}
	x, other := XMM(), XMM()
	VEXTRACTF128(Imm(1), low, x)
	op(low.AsX(), x, x)
	VPERMILPS(Imm(0b01001110), x, other) // the upper two lanes
	op(x, other, x)
	VPERMILPS(Imm(0b10110001), x, other) // the other of each two
	op(x, other, x)
	return x
}

// exp replaces x <= 0 by e^x: 2^n * p(r) with x = n ln 2 + r, by the
// polynomial of the Cephes library's expf.
func (s isa) exp(x VecVirtual) {
	VMAXPS(constant(-87), x, x)
	n := s.vec()
	VMULPS(constant(math.Log2E), x, n)
	if s.wide {
		VRNDSCALEPS(Imm(0), n, n)
	} else {
		VROUNDPS(Imm(0), n, n)
	}
	VFMADD231PS(constant(-0.693359375), n, x)
	VFMADD231PS(constant(2.12194440e-4), n, x)
	p := s.vec()
	VMOVUPS(constant(1.9875691500e-4), p)
	for _, c := range []float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		VFMADD213PS(constant(c), x, p)
	}
	square := s.vec()
	VMULPS(x, x, square)
	VADDPS(constant(1), x, x)
	VFMADD213PS(x, square, p)
	VCVTPS2DQ(n, n)
	VPADDD(word("i127", 127), n, n)
	VPSLLD(Imm(23), n, n)
	VMULPS(n, p, x)
}

// softmax turns n floats into exp(x - max x) and returns their sum.
func softmax(s isa) {
	function("softmax"+s.suffix, "func(x *float32, n int) float32")
	start := Load(Param("x"), GP64())
	count := Load(Param("n"), GP64())

	at, n := GP64(), GP64()
	MOVQ(start, at)
	MOVQ(count, n)
	top := s.lanes()
	for i := range top {
		VMOVUPS(s.mem(at, i), top[i])
	}
	loop16("top", n, func() {
		for i := range top {
			VMAXPS(s.mem(at, i), top[i], top[i])
		}
	}, at)
	shift := s.vec()
	VBROADCASTSS(s.fold(top, VMAXPS), shift)

	sum := s.zero()
	loop16("exp", count, func() {
		for i := range sum {
			x := s.vec()
			VMOVUPS(s.mem(start, i), x)
			VSUBPS(shift, x, x)
			s.exp(x)
			VMOVUPS(x, s.mem(start, i))
			VADDPS(x, sum[i], sum[i])
		}
	}, start)
	Store(s.fold(sum, VADDPS), ReturnIndex(0))
	finish()
}

// gelu replaces each of n floats x by max(x, 0) - |x|/2 * (1 - erf(|x|/sqrt 2)),
// which is x * (1 + erf(x/sqrt 2)) / 2, with erf from Abramowitz and Stegun,
// 7.1.26.
func gelu(s isa) {
	function("gelu"+s.suffix, "func(x *float32, n int)")
	at := Load(Param("x"), GP64())
	n := Load(Param("n"), GP64())
	zero := s.vec()
	if s.wide {
		VPXORD(zero, zero, zero)
	} else {
		VXORPS(zero, zero, zero)
	}
	one := s.vec()
	VMOVUPS(constant(1), one)
	loop16("loop", n, func() {
		for i := range s.parts() {
			x, size, z, t, p := s.vec(), s.vec(), s.vec(), s.vec(), s.vec()
			VMOVUPS(s.mem(at, i), x)
			if s.wide {
				VPANDD(word("magnitude", 0x7fffffff), x, size)
			} else {
				VPAND(word("magnitude", 0x7fffffff), x, size)
			}
			VMULPS(constant(1/math.Sqrt2), size, z)
			VMOVUPS(constant(0.3275911), t)
			VFMADD213PS(one, z, t)
			VDIVPS(t, one, t)
			VMOVUPS(constant(1.061405429), p)
			for _, c := range []float32{-1.453152027, 1.421413741, -0.284496736, 0.254829592} {
				VFMADD213PS(constant(c), t, p)
			}
			VMULPS(t, p, p)
			VMULPS(z, z, z)
			VSUBPS(z, zero, z)
			s.exp(z)
			VMULPS(z, p, p)
			VMULPS(constant(0.5), size, size)
			VMAXPS(zero, x, x)
			VFNMADD231PS(size, p, x)
			VMOVUPS(x, s.mem(at, i))
		}
	}, at)
	finish()
}

// addNorm sets dst = (v - mean v) / sqrt(var v + eps) * gain + bias for v = x + y.
func addNorm(s isa) {
	function("addNorm"+s.suffix, "func(n int, dst, x, y, gain, bias *float32, eps float32)")
	count := Load(Param("n"), GP64())
	start := Load(Param("dst"), GP64())
	x := Load(Param("x"), GP64())
	y := Load(Param("y"), GP64())
	gain := Load(Param("gain"), GP64())
	bias := Load(Param("bias"), GP64())
	size := XMM()
	VXORPS(size, size, size)
	VCVTSI2SSQ(count, size, size)

	n, at := GP64(), GP64()
	begin := func() {
		MOVQ(count, n)
		MOVQ(start, at)
	}

	begin()
	sum := s.zero()
	loop16("sum", n, func() {
		for i := range sum {
			v := s.vec()
			VMOVUPS(s.mem(x, i), v)
			VADDPS(s.mem(y, i), v, v)
			VMOVUPS(v, s.mem(at, i))
			VADDPS(v, sum[i], sum[i])
		}
	}, x, y, at)
	mean := s.vec()
	m := s.fold(sum, VADDPS)
	VDIVSS(size, m, m)
	VBROADCASTSS(m, mean)

	begin()
	squares := s.zero()
	loop16("squares", n, func() {
		for i := range squares {
			v := s.vec()
			VMOVUPS(s.mem(at, i), v)
			VSUBPS(mean, v, v)
			VFMADD231PS(v, v, squares[i])
		}
	}, at)
	v := s.fold(squares, VADDPS)
	VDIVSS(size, v, v)
	eps, err := Param("eps").Resolve()
	if err != nil {
		panic(err)
	}
	VADDSS(eps.Addr, v, v)
	VSQRTSS(v, v, v)
	one := XMM()
	VMOVSS(constant(1), one)
	VDIVSS(v, one, v)
	inverse := s.vec()
	VBROADCASTSS(v, inverse)

	begin()
	loop16("scale", n, func() {
		for i := range s.parts() {
			v := s.vec()
			VMOVUPS(s.mem(at, i), v)
			VSUBPS(mean, v, v)
			VMULPS(inverse, v, v)
			g := s.vec()
			VMOVUPS(s.mem(gain, i), g)
			VFMADD213PS(s.mem(bias, i), g, v)
			VMOVUPS(v, s.mem(at, i))
		}
	}, gain, bias, at)
	finish()
}
