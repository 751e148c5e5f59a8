//go:build unix && !linux

package runtimeapi

import "syscall"

// dieWithParent does nothing: when the Runtime API has gone, a bootstrap ends at its next call.
func dieWithParent(*syscall.SysProcAttr) {}
