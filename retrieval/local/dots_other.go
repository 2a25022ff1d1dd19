//go:build !amd64

package local

func dots(query, rows, out []float32) { dotsGeneric(query, rows, out) }
