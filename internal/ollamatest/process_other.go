//go:build !unix

package ollamatest

import "os/exec"

func ownGroup(*exec.Cmd) {}

func endGroup(c *exec.Cmd) { _ = c.Process.Kill() }
