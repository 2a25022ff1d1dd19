// Package local is the embedded index: exact dense search and BM25 over
// passages in memory, fused, and kept on disk in one SQLite file if a path is
// given.
package local
