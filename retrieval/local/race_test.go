package local

import (
	"path/filepath"
	"sync"
	"testing"
)

// Processes that open a new file at the same time all find an index in it.
func TestOpenedByManyAtOnce(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "index.db")
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				d, err := openDisk(t.Context(), path, "embedder", DefaultLockWait)
				if err != nil {
					t.Error(err)
					return
				}
				if err := d.close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
