// Package faults breaks what a server of askback rests on while users talk to it,
// and counts: turns sent, answered, stored, lost, doubled. The last two must be 0,
// and every message must be answered in the end.
//
//	go test ./bench/faults -v                            # each fault for some seconds, as ./test does
//	go test ./bench/faults -v -timeout 2h -args -full    # at full size
//	go test ./bench/faults -v -timeout 1h -run TestKilled -args -full
//
// The parts are real: the program of this tree, PostgreSQL, Qdrant's engine and
// Ollama, all as the tests of their packages use them.
package faults
