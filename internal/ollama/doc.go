// Package ollama is the one way to an Ollama server for the parts that use one:
// answers (generation/ollama), embeddings (retrieval/ollama) and the clarifier
// (gate/ollama).
//
// It stands on the server's own Go client and mends what that leaves to its
// callers: a stream that ends without its end mark is an error, a context that
// is over is that error, a prompt is never cut silently, and an error says what
// to do. The context reaches the request, so that a server stops working soon
// after its caller has gone.
package ollama
