//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package host

import (
	"os"
	"syscall"
)

// TryLock locks a file that nobody has locked, for as long as it is open.
func TryLock(file *os.File) (locked bool, err error) {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return true, nil
		case syscall.EWOULDBLOCK:
			return false, nil
		case syscall.EINTR: // by a signal, where the file is in the network
		default:
			return false, err
		}
	}
}
