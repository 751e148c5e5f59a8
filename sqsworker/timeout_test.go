package sqsworker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// TestTimeoutThatFails: the message fails, its handler does not run, and others are not touched.
func TestTimeoutThatFails(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("bad", "good")
		var r runs
		var failed atomic.Bool
		j := x.start(r.take(time.Second), func(o *Options) {
			o.Timeout = func(m *sqsonce.Message) time.Duration {
				if m.Body == "bad" && failed.CompareAndSwap(false, true) {
					panic("boom")
				}
				return time.Minute
			}
		})
		time.Sleep(500 * time.Millisecond)
		if s := j.Stats(); s.Failed != 1 || s.Running != 1 || r.count("bad") != 0 || !x.log.has("timeout_test.go") {
			t.Errorf("runs %v, %+v, want the bad one failed with its stack, and the other one running", r.list(), s)
		}
		time.Sleep(time.Minute)
		j.stopClean()
		x.wantEmpty()
		if r.count("bad") != 1 || r.count("good") != 1 {
			t.Errorf("runs: %v, want each once", r.list())
		}
	})
}

// TestTimeoutBeyondMaxExtension: it is logged once for a worker. 0 and negative are none.
func TestTimeoutBeyondMaxExtension(t *testing.T) {
	for timeout, want := range map[time.Duration]int{time.Minute: 0, time.Minute + 1: 1, 0: 0, -time.Minute: 0} {
		bubble(t, setup{}, func(x *fixture) {
			x.send("a", "b", "c")
			j := x.start(func(ctx context.Context, _ *sqsonce.Message) error {
				if _, limited := ctx.Deadline(); limited != (timeout > 0) {
					t.Errorf("timeout of %s: the context has a deadline: %t", timeout, limited)
				}
				return ctx.Err()
			}, func(o *Options) { o.MaxExtension, o.Timeout = time.Minute, timeoutOf(timeout) })
			time.Sleep(time.Second)
			j.stopClean()
			if n := x.log.count("setting=Options.Timeout"); n != want {
				t.Errorf("timeout of %s: logged %d times, want %d", timeout, n, want)
			}
		})
	}
}
