// Package qdrant keeps passages in Qdrant, over gRPC: hybrid retrieval from a
// laptop to a cluster. It serves as Store and as Retriever, as retrieval/local
// does, and ranks alike.
//
//	store, err := qdrant.Open(ctx, qdrant.Options{Addr: "localhost:6334", Embedder: e, Identity: e.Identity()})
//	report, err := retrieval.Sync(ctx, store, inputs, retrieval.SyncOptions{})
//	passages, err := store.Retrieve(ctx, retrieval.Query{Texts: []string{"How many days of leave?"}})
//
// One collection holds the passages of any number of tenants. A Store is bound
// to one tenant: every filter that it sends has that tenant's condition
// (filter.go), every point that it names has an id made of the tenant (point.go),
// and there is no call that leaves it out.
//
// A passage is one point with two named vectors: the embedder's, and the words
// with their BM25 weights, to which the server adds the inverse document
// frequency (point.go). A search is one Query with both as prefetches, fused by
// reciprocal rank (search.go); what a question's identifiers change is as in
// the local index (identifiers.go).
//
// A document is replaced in one step for readers (write.go). Each of its points
// carries the version of the document that it belongs to, and a record, a point
// without vectors, says which version holds. A writer first stores all points of
// the new version, counts them, then changes the record. A reader looks at the
// records of what it found and drops other versions (visible.go). The old points
// are deleted when no search needs them any more (sweep.go). Ids are made from
// the content, so that a write that is repeated, by a retry or after a crash,
// changes nothing.
//
// The collection is made by the first write. What made it is kept as its
// metadata and compared when it is opened (collection.go). Calls are repeated
// if the error is one that passes (call.go).
package qdrant
