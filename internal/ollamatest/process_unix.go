//go:build unix

package ollamatest

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a process a group of its own, so that its children end with it.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
