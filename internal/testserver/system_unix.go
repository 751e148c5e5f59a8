//go:build darwin || linux

package testserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	quitSignal     = syscall.SIGQUIT
	stopSignal     = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)

// ownGroup makes cmd lead a process group of its own.
func ownGroup(cmd *exec.Cmd) error {
	attributes(cmd).Setpgid = true
	return nil
}

// asNobody makes cmd run as the user nobody when this process runs as root: PostgreSQL and MariaDB refuse to run as root.
func asNobody(cmd *exec.Cmd) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := nobody()
	if err != nil {
		return err
	}
	attributes(cmd).Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

// give makes the user of asNobody the owner of everything below folder.
func give(folder string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := nobody()
	if err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

func nobody() (uid, gid int, err error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return 0, 0, fmt.Errorf("a user to run as: %w", err)
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, fmt.Errorf("user nobody: %w", err)
	}
	if gid, err = strconv.Atoi(u.Gid); err != nil {
		return 0, 0, fmt.Errorf("user nobody: %w", err)
	}
	return uid, gid, nil
}

// killGroup kills cmd and what it has started. PostgreSQL's processes leave the group; they end when they see that their
// parent has ended. A group that has ended already is no error.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// tryLock locks the file unless another process or another open file has it locked.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
