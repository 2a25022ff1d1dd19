// Package tenant keeps what several users of one server have apart: their
// conversations and the documents that they upload.
//
// Whose a piece of work is goes with its context (With, Of). Three things stand
// between that and what is stored, so that no door can forget to ask:
//
//	Conversations  a store in which each tenant has ids of its own: an id of another's
//	               conversation is one that is not there
//	Knowledge      the documents for everyone, and beside them, in a store of its own,
//	               those of each tenant: a search looks into these two and no others
//	ErrNone        what they answer to work that is nobody's. It never sees everything
//
// What is not kept apart: with one Qdrant collection, the frequencies of words by which
// BM25 weighs are those of all tenants, which tells nothing but that a word is rare.
package tenant
