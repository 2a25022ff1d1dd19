// Package local is the embedded index: exact dense search and BM25 over
// passages in memory, fused, and kept on disk in one SQLite file if a path is
// given.
//
//	index, err := local.Open(ctx, local.Options{Path: "index.db", Embedder: e, Identity: e.Identity()})
//	report, err := retrieval.Sync(ctx, index, inputs, retrieval.SyncOptions{})
//	passages, err := index.Retrieve(ctx, retrieval.Query{Texts: []string{"How many days of leave?"}})
//
// All searching is in memory (memory.go): vectors in blocks, scanned whole
// (dense.go), an inverted index of words (bm25.go), and the exact
// identifiers that passages hold. Search (search.go) ranks by both, fuses, and
// lets identifiers decide where the question names one.
//
// The file (disk.go) holds the passages with their vectors; postings are made
// from them when it is opened. Documents change in one transaction and then, in
// one step, in memory. Several processes may have one file open: writers take
// turns, and each notices, before it reads, what the others wrote (reload.go). A
// killed process leaves the last whole transaction. A file that is damaged, of
// another program, or made with another embedder is refused and left as it is
// (errors.go); Rebuild moves it aside.
package local
