package runtimeapi

import "time"

// Waits before a start, after processes that failed their init.
const (
	minStartWait = 100 * time.Millisecond
	maxStartWait = 5 * time.Second
)

// initFailedLocked makes the next start wait: a bootstrap that crashes at once would otherwise be started as fast as
// invocations come in.
func (f *Function) initFailedLocked() {
	f.startWait = min(max(2*f.startWait, minStartWait), maxStartWait)
	f.startAt = time.Now().Add(f.startWait)
}

func (f *Function) initDoneLocked() { f.startWait, f.startAt = 0, time.Time{} }

// waitToStart reports whether a process may be started now.
func (f *Function) waitToStart() bool {
	f.mu.Lock()
	wait := time.Until(f.startAt)
	f.mu.Unlock()
	t := time.NewTimer(max(wait, 0))
	defer t.Stop()
	select {
	case <-f.closing:
		return false
	case <-t.C:
		return true
	}
}
