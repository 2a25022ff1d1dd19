#include "textflag.h"

// func dotsAVX2(query, rows *float32, dim, n int, out *float32)
//
// Four sums of eight lanes run side by side, so that the additions need not
// wait for each other. dim is a multiple of 32, n is at least 1.
TEXT ·dotsAVX2(SB), NOSPLIT, $0-40
	MOVQ query+0(FP), SI
	MOVQ rows+8(FP), DI
	MOVQ dim+16(FP), CX
	MOVQ n+24(FP), DX
	MOVQ out+32(FP), R8

row:
	MOVQ   SI, R9
	MOVQ   CX, R10
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

lanes:
	VMOVUPS     (DI), Y4
	VMOVUPS     32(DI), Y5
	VMOVUPS     64(DI), Y6
	VMOVUPS     96(DI), Y7
	VFMADD231PS (R9), Y4, Y0
	VFMADD231PS 32(R9), Y5, Y1
	VFMADD231PS 64(R9), Y6, Y2
	VFMADD231PS 96(R9), Y7, Y3
	ADDQ        $128, DI
	ADDQ        $128, R9
	SUBQ        $32, R10
	JNZ         lanes

	VADDPS       Y1, Y0, Y0
	VADDPS       Y3, Y2, Y2
	VADDPS       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VHADDPS      X0, X0, X0
	VHADDPS      X0, X0, X0
	VMOVSS       X0, (R8)
	ADDQ         $4, R8
	DECQ         DX
	JNZ          row

	VZEROUPPER
	RET
