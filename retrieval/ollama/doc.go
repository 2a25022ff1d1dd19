// Package ollama is an embedder that a model on an Ollama server serves, for an
// index or for anything of langchaingo that takes one.
//
//	e, err := ollama.New(ctx, ollama.Options{Model: "nomic-embed-text"})
//	index, err := local.Open(ctx, local.Options{Path: "index.db", Embedder: e, Identity: e.Identity()})
//
// A text that is longer than the model reads is split and its parts' vectors
// are pooled, or refused by name; the server never cuts it.
package ollama
