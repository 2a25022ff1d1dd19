package qdrant

import "errors"

// What can be wrong. The errors of Open and of a Store wrap these, name the
// server or the collection, and say what to do. An invalid passage is
// retrieval.ErrInvalid, as everywhere; an error that ends with the context is
// the context's.
var (
	// ErrPlaintextKey: an API key would go over the network in plain text.
	ErrPlaintextKey = errors.New("an API key is not sent in plain text to another host")
	// ErrUnavailable: the server does not answer, for longer than was waited.
	ErrUnavailable = errors.New("the Qdrant server cannot be reached")
	// ErrDenied: the server does not take the API key.
	ErrDenied = errors.New("the Qdrant server denies access")
	// ErrVersion: the server is too old for this program.
	ErrVersion = errors.New("the Qdrant server is too old")
	// ErrMismatch: the collection holds passages of another embedder, or is not
	// one of this program.
	ErrMismatch = errors.New("the collection was made in another way")
	// ErrConflict: another process was writing the same document.
	ErrConflict = errors.New("the document is being written by another process")
	// ErrClosed is what a closed store answers.
	ErrClosed = errors.New("the Qdrant store is closed")
)
