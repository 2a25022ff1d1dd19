// Command asm generates the encoder's inner loops for amd64, kernels_amd64.s
// and its declarations, once for AVX-512F and once for AVX2 with FMA.
//
// Both versions add in the same order, so they give the same bits: a sum over
// lanes has 16 partial sums in either (one register of 16 lanes, or two of 8),
// and a product sums over k one by one with fused multiply-add.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// isa is one instruction set: its name, and how 16 lanes are held.
type isa struct {
	suffix   string
	wide     bool // one register of 16 lanes instead of two of 8
	gemmRows int
}

var (
	avx512 = isa{suffix: "AVX512", wide: true, gemmRows: 12}
	avx2   = isa{suffix: "AVX2", wide: false, gemmRows: 6}
)

// vec is a new vector register.
func (s isa) vec() VecVirtual {
	if s.wide {
		return ZMM()
	}
	return YMM()
}

// bytes is the size of a vector register.
func (s isa) bytes() int {
	if s.wide {
		return 64
	}
	return 32
}

// parts is the number of registers that hold 16 lanes.
func (s isa) parts() int { return 64 / s.bytes() }

func main() {
	ConstraintExpr("amd64,!purego")
	for _, s := range []isa{avx512, avx2} {
		for rows := 1; rows <= s.gemmRows; rows++ {
			gemm(s, rows)
		}
		widen(s)
		softmax(s)
		gelu(s)
		addNorm(s)
	}
	Generate()
}

// function begins a function that neither splits the stack nor lets its
// pointers escape.
func function(name, signature string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
}

func finish() {
	VZEROUPPER()
	RET()
}

// floats loads a count of floats as a count of bytes.
func floats(param string) Register {
	r := Load(Param(param), GP64())
	SHLQ(Imm(2), r)
	return r
}

// constants holds the address of each constant, 16 times repeated.
var constants = map[string]Mem{}

func constant(value float32) Mem {
	bits := math.Float32bits(value)
	return word(fmt.Sprintf("f%08x", bits), bits)
}

func word(name string, bits uint32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(bits))
	}
	constants[name] = m
	return m
}
