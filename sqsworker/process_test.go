package sqsworker_test

import (
	"syscall"
	"testing"
	"time"
)

// TestKilledProcesses: kill -9 of real workers, again and again, in the middle of their work. What they had in hand comes
// back when its visibility timeout is over; what they had finished and not deleted is deleted without a run.
func TestKilledProcesses(t *testing.T) {
	onEach(t, func(f *fleet) {
		const n = 300
		f.send(n)
		a, b := f.start(), f.start()
		for i := range 2 {
			f.waitFor((i + 1) * n / 4)
			a.kill()
			a, b = b, f.start()
		}
		f.waitFor(n)
		f.wantSettled()
		a.stop()
		b.stop()
	})
}

// TestSleepingProcess: SIGSTOP for longer than the visibility timeout, as a hypervisor's or a debugger's pause. The other
// worker gets what the sleeper holds; when that wakes, its effects are refused by the record and its handles are dead.
func TestSleepingProcess(t *testing.T) {
	onEach(t, func(f *fleet) {
		const n = 200
		f.config.Take = 100 * time.Millisecond
		f.send(n)
		a, b := f.start(), f.start()
		f.waitFor(n / 4)
		a.signal(syscall.SIGSTOP)
		time.Sleep(f.config.Visibility + time.Second)
		a.signal(syscall.SIGCONT)
		f.waitFor(n)
		f.wantSettled()
		a.stop()
		b.stop()
	})
}

// TestTerminatedProcess: SIGTERM in the middle of the work. When the process has ended, with status 0, nothing that it
// had received is hidden, and nothing that it had finished is in the queue.
func TestTerminatedProcess(t *testing.T) {
	onEach(t, func(f *fleet) {
		const n = 400
		f.config.Visibility = 10 * time.Minute // what is stranded stays so
		f.send(n)
		for i := range 3 {
			w := f.start()
			f.waitFor((i + 1) * n / 5)
			w.stop()
			done := len(f.done())
			if visible, hidden := f.depth(); hidden != 0 || visible+done != n {
				f.Errorf("after stop %d: %d done, %d visible, %d hidden; want %d in all and none hidden", i+1, done, visible, hidden, n)
			}
		}
		w := f.start()
		f.waitFor(n)
		f.wantSettled()
		w.stop()
	})
}
