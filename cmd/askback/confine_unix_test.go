//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// confine makes a command run as a user, with another root folder.
func confine(cmd *exec.Cmd, root string, user uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
}
