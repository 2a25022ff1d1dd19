//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package keys

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock waits until no other process has the file locked. The system ends the lock of
// a process that dies.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { _ = f.Close() }, nil
}
