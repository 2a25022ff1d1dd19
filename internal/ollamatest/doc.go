// Package ollamatest gives tests an Ollama server: a real one with tiny models
// whose every word is scripted (Start), or one that does what a real one cannot
// be made to do (NewFake).
//
// The real one is built by install.sh into the user's cache, which ./test sees
// to. ASKBACK_TEST_OLLAMA may name a server that runs already; the tests put
// their models there and take them away again.
package ollamatest
