package job

import (
	"runtime"
	"syscall"
)

// Meter knows what the process had used when the work began: starting a process is not what is measured.
type Meter struct {
	cpu     int64
	mallocs uint64
}

// StartMeter takes the process as it is now as the beginning.
func StartMeter() (Meter, error) {
	cpu, err := CPU()
	if err != nil {
		return Meter{}, err
	}
	return Meter{cpu: cpu, mallocs: mallocs()}, nil
}

// Read returns what was used since.
func (m Meter) Read() (Usage, error) {
	cpu, err := CPU() // first: reading the heap's counters stops the world
	if err != nil {
		return Usage{}, err
	}
	return Usage{CPU: cpu - m.cpu, Mallocs: int64(mallocs() - m.mallocs)}, nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// CPU is the user and system time of this process, in microseconds.
func CPU() (int64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000, nil
}
