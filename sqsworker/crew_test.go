package sqsworker

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// goroutine is the name of the calling one.
func goroutine() string {
	var head [64]byte
	name, _, _ := bytes.Cut(head[:runtime.Stack(head[:], false)], []byte(" ["))
	return string(name)
}

func TestCrewIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew()
		var names []string
		next := func(f func()) {
			c.do(func() {
				names = append(names, goroutine())
				f()
			})
			synctest.Wait()
		}
		next(func() {})
		next(func() {})
		next(runtime.Goexit)
		next(func() {})
		c.dismiss()
		next(func() {})
		c.dismiss()
		if len(names) != 5 || names[0] != names[1] || names[1] != names[2] {
			t.Errorf("ran on %v, want the first three on one", names)
		}
		if names[3] == names[2] || names[4] == names[3] {
			t.Errorf("ran on %v, want another one after runtime.Goexit, and after all were dismissed", names)
		}
	})
}

// TestCrewNeverWaits: one that is busy keeps nobody waiting, also where it was dismissed meanwhile.
func TestCrewNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew()
		release := make(chan struct{})
		running := 0
		for range 3 {
			c.do(func() {
				running++
				<-release
			})
			synctest.Wait()
		}
		c.dismiss()
		if running != 3 {
			t.Errorf("%d of 3 at once", running)
		}
		close(release) // a bubble that is left with a goroutine fails
	})
}

// TestIdleWorkerDismissesItsCrews: a burst leaves no goroutines behind.
func TestIdleWorkerDismissesItsCrews(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var r runs
		w := x.start(r.take(time.Second))
		idle := func() int {
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			return runtime.NumGoroutine()
		}
		before := idle()
		x.sendMany(100)
		if after := idle(); after > before {
			x.Errorf("%d goroutines, %d before the burst", after, before)
		}
		if len(r.list()) != 100 {
			x.Errorf("%d handled of 100", len(r.list()))
		}
		if err := w.stop(); err != nil {
			x.Error(err)
		}
	})
}

// TestStopDismissesTheCrews: also where the last receive was not empty. A bubble that is left with a goroutine fails.
func TestStopDismissesTheCrews(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(10)
		var r runs
		w := x.start(r.take(time.Millisecond))
		go func() {
			time.Sleep(5 * time.Second)
			x.send("late")
		}()
		time.Sleep(time.Second)
		if err := w.stop(); err != nil {
			x.Error(err)
		}
		if got := len(r.list()); got != 10 || len(x.queued()) != 1 {
			x.Errorf("%d handled and %d left, want the 10 from before the stop, and the one from after it", got, len(x.queued()))
		}
	})
}
