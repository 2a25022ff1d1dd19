package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/askback/askback/internal/qdranttest"
)

// TestQdrantScripts runs the command lines that need a Qdrant server, each with
// a collection of its own, on Qdrant's engine.
func TestQdrantScripts(t *testing.T) {
	server := qdranttest.Start(t)
	p := params("testdata/script/ingest-qdrant")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Setenv("QDRANT_ADDR", server.Addr)
		e.Setenv("QDRANT_COLLECTION", "scripts")
		return setup(e)
	}
	testscript.Run(t, p)
}
