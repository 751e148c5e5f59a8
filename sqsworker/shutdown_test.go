package sqsworker

import (
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestShutdownCancelsNow(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		var r runs
		j := x.start(r.take(time.Hour), func(o *Options) { o.WaitTime, o.StopTimeout = time.Second, 10*time.Minute })
		time.Sleep(5 * time.Second)
		j.cancel()
		time.Sleep(30 * time.Second)
		began := time.Now()
		j.Shutdown()
		j.Shutdown()
		if err := j.wait(); err != nil || time.Since(began) > time.Second {
			t.Errorf("Run: got %v after %s, want nil at once", err, time.Since(began))
		}
		if got := x.receive(time.Minute); len(got) != 1 {
			t.Error("the message is not visible right after the stop")
		}
	})
}

// TestShutdownSaysWhatItWaitsFor: one line, with what is under way when the handlers have been cancelled.
func TestShutdownSaysWhatItWaitsFor(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(time.Hour), func(o *Options) { o.Concurrency, o.MaxInFlight = 2, 20 })
		x.send("a", "b", "c")
		j.Resume()
		time.Sleep(5 * time.Second)
		j.Shutdown()
		j.Shutdown()
		j.stopClean()
		if n := x.log.count("cancelled before StopTimeout"); n != 1 {
			t.Errorf("%d lines, want 1", n)
		}
		if want := "receives=1 handlers=2 deletes=0 releases=1 dead_letters=0"; !x.log.has(want) {
			t.Errorf("not logged: %s", want)
		}
	})
}

// TestShutdownBeforeTheFirstReceive: no receive is started, and Run returns at once.
func TestShutdownBeforeTheFirstReceive(t *testing.T) {
	for name, shutdownAfter := range map[string]time.Duration{"before Run": 0, "in a call": time.Second, "between two": 7 * time.Second} {
		t.Run(name, func(t *testing.T) {
			rule := fault.Rule{Op: "GetQueueAttributes", Prob: 1, Do: fault.Delay, Delay: 5 * time.Second}
			if name == "between two" {
				rule.Do = fault.Error
				rule.Delay = 0
			}
			bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
				j := x.newJob(x.c, ok)
				began := time.Now()
				time.AfterFunc(shutdownAfter, j.Shutdown)
				if shutdownAfter == 0 {
					j.Shutdown()
				}
				err := j.Run(j.ctx)
				if took := time.Since(began); err != nil || took != shutdownAfter || x.calls(opReceive) != 0 {
					t.Errorf("returned %v after %s, %d receives; want nil after %s and none", err, took, x.calls(opReceive), shutdownAfter)
				}
			})
		})
	}
}

// TestStopBeforeTheFirstStep: no receive is started, also if the stop is asked for at the last moment.
func TestStopBeforeTheFirstStep(t *testing.T) {
	for _, shutdown := range []bool{false, true} {
		run(t, fmt.Sprintf("shutdown=%t", shutdown), setup{}, func(x *fixture) {
			j := x.newJob(x.c, ok)
			l := newLoop(j.ctx, j.Worker, queue{})
			if shutdown {
				j.Shutdown()
			} else {
				j.cancel()
			}
			if err := l.run(); err != nil || x.calls(opReceive) > 0 {
				x.Errorf("run: got %v and %d receives, want none", err, x.calls(opReceive))
			}
		})
	}
}
