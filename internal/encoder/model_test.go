package encoder

import (
	"io/fs"
	"sync"
	"testing"
)

func minilmFolder(t testing.TB) fs.FS {
	folder, err := fs.Sub(minilm, "minilm")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

var minilms sync.Map // *kernels -> *Model

// minilmWith gives the embedded base on one implementation, loaded once.
func minilmWith(t testing.TB, k *kernels) *Model {
	if m, ok := minilms.Load(k); ok {
		return m.(*Model)
	}
	m, err := load(minilmFolder(t), k)
	if err != nil {
		t.Fatal(err)
	}
	minilms.Store(k, m)
	return m
}
