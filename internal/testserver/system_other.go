//go:build !darwin && !linux

package testserver

import (
	"errors"
	"os"
	"os/exec"
)

var (
	quitSignal     = os.Kill
	stopSignal     = os.Kill
	continueSignal = os.Kill
)

var errSystem = errors.New("servers are installed and started on Linux and macOS only")

func ownGroup(*exec.Cmd) error { return errSystem }

func asNobody(*exec.Cmd) error { return errSystem }

func give(string) error { return errSystem }

func killGroup(*exec.Cmd) {}

func tryLock(*os.File) (bool, error) { return false, errSystem }
