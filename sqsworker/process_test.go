//go:build unix

package sqsworker_test

import (
	"testing"
	"time"
)

// TestKilledProcesses: kill -9 of real workers, again and again, in the middle of their work. Their messages come back when
// the visibility timeout ends. Those that were done and not deleted are deleted without a run.
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
		f.wantAllDone()
		a.stop()
		b.stop()
	})
}

// TestSleepingProcess: SIGSTOP for longer than the visibility timeout, like a pause by a hypervisor or a debugger. The other
// worker gets the messages of the sleeping one. When that wakes, the record refuses its effects and SQS its handles.
func TestSleepingProcess(t *testing.T) {
	onEach(t, func(f *fleet) {
		const n = 200
		f.config.Take = 100 * time.Millisecond
		f.send(n)
		a, b := f.start(), f.start()
		f.waitFor(n / 4)
		if err := a.Stop(func() { time.Sleep(f.config.Visibility + time.Second) }); err != nil {
			f.Error(err)
		}
		f.waitFor(n)
		f.wantAllDone()
		a.stop()
		b.stop()
	})
}

// TestTerminatedProcess: SIGTERM in the middle of the work. When the process has ended, with status 0, no message that it
// received is hidden, and no message that it finished is in the queue.
func TestTerminatedProcess(t *testing.T) {
	onEach(t, func(f *fleet) {
		const n = 400
		f.config.Visibility = 10 * time.Minute // a message that stays hidden does so until the end
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
		f.wantAllDone()
		w.stop()
	})
}
