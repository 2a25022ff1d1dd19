package local

import "golang.org/x/sys/cpu"

var haveAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// dotsAVX2 is dotsGeneric for n rows.
//
//go:noescape
func dotsAVX2(query, rows *float32, dim, n int, out *float32)

func dots(query, rows, out []float32) {
	if len(out) == 0 || len(query) == 0 {
		return
	}
	if !haveAVX2 {
		dotsGeneric(query, rows, out)
		return
	}
	_ = rows[len(query)*len(out)-1]
	dotsAVX2(&query[0], &rows[0], len(query), len(out), &out[0])
}
