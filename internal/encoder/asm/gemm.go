package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gemm multiplies a fixed number of rows by a panel two registers wide. All
// sums stay in registers; each step of k loads the panel's next row once and
// broadcasts one number from each row of a.
func gemm(s isa, rows int) {
	function(fmt.Sprintf("gemm%s_%d", s.suffix, rows),
		"func(k int, a *float32, lda int, panel *float32, start *float32, lds int, c *float32, ldc int)")
	k := Load(Param("k"), GP64())
	panel := Load(Param("panel"), GP64())

	sums := make([][2]VecVirtual, rows)
	eachRow("start", "lds", rows, func(i int, at Mem) {
		for j := range sums[i] {
			sums[i][j] = s.vec()
			VMOVUPS(at.Offset(j*s.bytes()), sums[i][j])
		}
	})

	// One base register for each three rows of a, which scaled indexing reaches.
	stride := floats("lda")
	bases := []Register{Load(Param("a"), GP64())}
	for len(bases)*3 < rows {
		last, next := bases[len(bases)-1], GP64()
		LEAQ(Mem{Base: last, Index: stride, Scale: 2}, next)
		ADDQ(stride, next)
		bases = append(bases, next)
	}
	cell := func(i, step int) Mem {
		m := Mem{Base: bases[i/3], Disp: 4 * step}
		if i%3 > 0 {
			m.Index, m.Scale = stride, uint8(i%3)
		}
		return m
	}

	b := [2]VecVirtual{s.vec(), s.vec()}
	spread := []VecVirtual{s.vec(), s.vec()}
	if s.wide {
		spread = append(spread, s.vec(), s.vec())
	}
	step := func(n int) {
		for j := range b {
			VMOVUPS(Mem{Base: panel, Disp: (2*n + j) * s.bytes()}, b[j])
		}
		for i := range sums {
			x := spread[i%len(spread)]
			VBROADCASTSS(cell(i, n), x)
			for j := range b {
				VFMADD231PS(b[j], x, sums[i][j])
			}
		}
	}
	advance := func(n int) {
		ADDQ(I32(2*n*s.bytes()), panel)
		for _, base := range bases {
			ADDQ(I32(4*n), base)
		}
	}

	const unroll = 4
	SUBQ(Imm(unroll), k)
	JLT(LabelRef("rest"))
	Label("unrolled")
	for n := range unroll {
		step(n)
	}
	advance(unroll)
	SUBQ(Imm(unroll), k)
	JGE(LabelRef("unrolled"))
	Label("rest")
	ADDQ(Imm(unroll), k)
	JE(LabelRef("store"))
	Label("single")
	step(0)
	advance(1)
	DECQ(k)
	JNE(LabelRef("single"))

	Label("store")
	eachRow("c", "ldc", rows, func(i int, at Mem) {
		for j := range sums[i] {
			VMOVUPS(sums[i][j], at.Offset(j*s.bytes()))
		}
	})
	finish()
}

// eachRow walks down the rows of a matrix parameter.
func eachRow(base, stride string, rows int, f func(i int, at Mem)) {
	at := Load(Param(base), GP64())
	down := floats(stride)
	for i := range rows {
		f(i, Mem{Base: at})
		if i < rows-1 {
			ADDQ(down, at)
		}
	}
}

// widen turns the int8 rows of a panel two registers wide into scaled floats.
func widen(s isa) {
	function("widen"+s.suffix, "func(k int, dst *float32, src *int8, scale *float32)")
	k := Load(Param("k"), GP64())
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	from := Load(Param("scale"), GP64())
	lanes := s.bytes() / 4
	scale := [2]VecVirtual{s.vec(), s.vec()}
	for j := range scale {
		VMOVUPS(Mem{Base: from, Disp: j * s.bytes()}, scale[j])
	}
	Label("loop")
	for j := range scale {
		x := s.vec()
		VPMOVSXBD(Mem{Base: src, Disp: j * lanes}, x)
		VCVTDQ2PS(x, x)
		VMULPS(scale[j], x, x)
		VMOVUPS(x, Mem{Base: dst, Disp: j * s.bytes()})
	}
	ADDQ(I32(2*lanes), src)
	ADDQ(I32(2*s.bytes()), dst)
	DECQ(k)
	JNE(LabelRef("loop"))
	finish()
}
