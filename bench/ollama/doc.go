// Package ollama measures what stands between a caller and an Ollama server, and
// what the gates cost with and without the cascade. It needs the server that the
// tests use (internal/ollamatest/install.sh):
//
//	go test ./bench/ollama -run '^$' -bench Answer -benchtime 100x
//	go test ./bench/ollama -run '^$' -bench Day -benchtime 1x
package ollama
