package sqsworker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// TestTimeoutOfTheMessage: each message has its own timeout; 0 and negative are none.
func TestTimeoutOfTheMessage(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		timeouts := map[string]time.Duration{"short": time.Second, "long": 20 * time.Second, "none": 0, "negative": -time.Minute}
		ended := map[string]chan time.Duration{}
		for body := range timeouts {
			ended[body] = make(chan time.Duration, 1)
			x.send(body)
		}
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			began := time.Now()
			select {
			case <-ctx.Done():
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("%s: got %v, want DeadlineExceeded", m.Body, ctx.Err())
				}
			case <-time.After(time.Hour):
			}
			ended[m.Body] <- time.Since(began)
			return nil
		}, func(o *Options) { o.Timeout = func(m *sqsonce.Message) time.Duration { return timeouts[m.Body] } })
		time.Sleep(2 * time.Hour)
		j.stopClean()
		for body, want := range timeouts {
			if want <= 0 {
				want = time.Hour
			}
			if got := <-ended[body]; got != want {
				t.Errorf("%s: ended after %s, want %s", body, got, want)
			}
		}
	})
}

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

// TestTimeoutBeyondMaxExtension: it is logged once for a worker.
func TestTimeoutBeyondMaxExtension(t *testing.T) {
	for timeout, want := range map[time.Duration]int{time.Minute: 0, time.Minute + 1: 1} {
		bubble(t, setup{}, func(x *fixture) {
			x.send("a", "b", "c")
			j := x.start(ok, func(o *Options) { o.MaxExtension, o.Timeout = time.Minute, timeoutOf(timeout) })
			time.Sleep(time.Second)
			j.stopClean()
			if n := x.log.count("setting=Options.Timeout"); n != want {
				t.Errorf("timeout of %s: logged %d times, want %d", timeout, n, want)
			}
		})
	}
}
