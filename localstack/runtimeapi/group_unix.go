//go:build unix

package runtimeapi

import (
	"os/exec"
	"syscall"
)

// ownGroup starts the process in a process group of its own, so that killGroup ends its children too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

func killGroup(cmd *exec.Cmd) {
	if cmd.Process.Signal(syscall.Signal(0)) == nil { // else it was waited for, and its ID may be another's
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails only if all have exited
	}
}
