//go:build !(amd64 || arm64) || purego

package encoder

// available lists the implementations that run on this machine, best first.
func available() []*kernels { return []*kernels{portable} }
