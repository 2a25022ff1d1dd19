// Package retrievertest holds the suite that every store of passages that
// retrieves passes, and an embedder for tests from whose vectors the text can
// be read.
package retrievertest
