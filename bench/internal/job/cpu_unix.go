//go:build unix

package job

import "syscall"

// CPU is the user and system time of this process, in microseconds.
func CPU() (int64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000, nil
}
