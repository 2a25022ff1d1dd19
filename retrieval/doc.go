// Package retrieval finds the passages that a question is answered from.
//
// It holds the value types that all retrievers share, the chunking of
// documents into passages, the fusion of rankings, and the bringing up to date
// of a store (Sync). Retrievers and loaders stand in sub-packages:
// retrieval/documents reads files, retrieval/local is the embedded index,
// retrieval/qdrant keeps passages in Qdrant.
//
// It imports no other stage. Passages are its small value type that the other
// stages share.
package retrieval
