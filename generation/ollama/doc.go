// Package ollama gives a model on an Ollama server as a langchaingo model, for
// generation.Model and for anything else that takes one.
//
// Beside what langchaingo's own adapter does, it sizes the context to the
// prompt instead of letting the server cut it, takes a reply without its end
// mark for the failure it is, keeps a thinking model's thoughts apart from its
// text, and stops the server's work when the caller has gone. An option that
// has no meaning for Ollama is refused, never ignored.
package ollama
