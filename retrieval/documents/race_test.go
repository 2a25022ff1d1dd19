//go:build race

package documents

// memoryFactor is how many times more memory the race detector takes.
const memoryFactor = 6
