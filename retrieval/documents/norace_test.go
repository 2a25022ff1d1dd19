//go:build !race

package documents

const memoryFactor = 1
