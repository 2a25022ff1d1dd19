// Package ollama is the clarifier that an Ollama server runs: a generative
// model that keeps the contract of the published query-clarification adapter
// for Granite 4 (granitelib-rag-r1.0). One model serves both gates.
//
// The contract: the dialogue goes in as chat messages, the passages as
// documents [{text, doc_id}], laid out as Granite's chat template does; the
// reply is {"clarification": "CLEAR"} or the question to ask, held to a schema,
// at temperature 0, of 1024 tokens at most. The score is the probability that
// the model does not say CLEAR, from its token probabilities where the server
// tells them.
//
// The reply is validated all the same. Options are those that the clarification
// names and passages hold; otherwise the question is open.
package ollama
