// Package tinygguf writes tiny language models as GGUF files: scripted ones,
// which say word for word what a test wants, and random ones, with adapters to
// go with them. A real server runs them in milliseconds.
//
// The format is GGUF version 3, as documented in the ggml project; weights are
// 32-bit floats.
package tinygguf
