package local_test

import (
	"path/filepath"
	"testing"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/retrievertest"
)

func open(t *testing.T, o local.Options) *local.Index {
	t.Helper()
	if o.Embedder == nil {
		o.Embedder = new(retrievertest.Embedder)
	}
	x, err := local.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func TestInMemory(t *testing.T) {
	retrievertest.Run(t, func(t *testing.T, e retrieval.Embedder) retrievertest.Store {
		return open(t, local.Options{Embedder: e})
	})
}

func TestOnDisk(t *testing.T) {
	retrievertest.Run(t, func(t *testing.T, e retrieval.Embedder) retrievertest.Store {
		return open(t, local.Options{Embedder: e, Path: filepath.Join(t.TempDir(), "new folder", "index 1#?%.db")})
	})
}
