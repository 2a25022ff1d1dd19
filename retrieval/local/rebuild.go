package local

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Rebuild makes room for a new index: it moves the file at path aside, with
// SQLite's files beside it, and returns its new name. Nothing is deleted. No
// process may have the index open.
func Rebuild(path string) (moved string, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("moving the index aside: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("moving the index aside: %s is no file; name a file for the index", path)
	}
	stamp := time.Now().UTC().Format("20060102T150405")
	moved = path + ".old-" + stamp
	for n := 2; ; n++ {
		if _, err := os.Lstat(moved); errors.Is(err, os.ErrNotExist) {
			break
		}
		moved = fmt.Sprintf("%s.old-%s-%d", path, stamp, n)
	}
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, moved+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("moving the index aside: %w", err)
		}
	}
	return moved, nil
}
