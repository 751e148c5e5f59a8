package sqsworker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// elsewhere is a handler whose event is held by another process until a time.
func elsewhere(r *runs, until time.Time) sqsonce.Handler {
	return func(_ context.Context, m *sqsonce.Message) error {
		defer r.begin(m.Body)()
		if left := time.Until(until); left > 0 && m.Body != "g:free" {
			return sqsonce.RetryAfter(left+time.Second, fmt.Errorf("held: %w", sqsonce.ErrInProgress))
		}
		return nil
	}
}

// TestInProgressIsNoFailure: it comes back when the holder's lease has ended, and is not counted as failed.
func TestInProgressIsNoFailure(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("a")
		var r runs
		j := x.start(elsewhere(&r, time.Now().Add(100*time.Second)))
		time.Sleep(50 * time.Second)
		for _, m := range x.queued() {
			if m.InFlight && time.Until(m.VisibleAt) < 40*time.Second {
				t.Errorf("visible in %s, want after the holder's lease", time.Until(m.VisibleAt))
			}
		}
		time.Sleep(2 * time.Minute)
		j.stopClean()
		x.wantEmpty()
		if s := j.Stats(); len(r.list()) != 2 || s.Failed != 0 || s.Done != 1 || s.Retried != 1 {
			t.Errorf("%v; %+v", r.list(), s)
		}
	})
}

// TestInProgressDoublesPerReceive: without a known end it waits half the visibility timeout, doubling.
func TestInProgressDoublesPerReceive(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		var at []time.Time
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			at = append(at, time.Now())
			if m.ReceiveCount < 4 {
				return sqsonce.ErrInProgress
			}
			return nil
		})
		time.Sleep(10 * time.Minute)
		j.stopClean()
		for i, want := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
			if got := at[i+1].Sub(at[i]); got < want || got > want+time.Second {
				t.Errorf("delay %d: got %s, want %s", i+1, got, want)
			}
		}
	})
}

// TestInProgressNearTheDLQIsKept: one more receive would send it to the dead-letter queue without having been run.
func TestInProgressNearTheDLQIsKept(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo=%t", fifo), func(t *testing.T) {
			bubble(t, setup{fifo: fifo, maxReceives: 1}, func(x *fixture) {
				x.send("g:a", "h:b", "g:free")
				var r runs
				// One slot: a kept message must not take it.
				j := x.start(elsewhere(&r, time.Now().Add(10*time.Minute)), func(o *Options) { o.Concurrency = 1 })
				time.Sleep(time.Minute)
				if !fifo && r.count("g:free") != 1 {
					t.Error("a kept message takes a slot")
				}
				time.Sleep(12 * time.Minute)
				j.stopClean()
				x.wantEmpty()
				if n := len(x.dead()); n != 0 {
					t.Errorf("%d in the dead-letter queue", n)
				}
				if s := j.Stats(); s.Done != 3 || s.Failed != 0 || s.Received != 3 {
					t.Errorf("%v; %+v", r.list(), s)
				}
			})
		})
	}
}

// TestInProgressTakesNoLocalRetry: a head that was in progress elsewhere still has all its retries in this process.
func TestInProgressTakesNoLocalRetry(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("g:0")
		n, received := 0, 0
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			received = m.ReceiveCount
			switch n++; {
			case n <= 5:
				return sqsonce.RetryAfter(time.Second, sqsonce.ErrInProgress)
			case n <= 7:
				return errTest
			}
			return nil
		})
		time.Sleep(time.Minute)
		j.stopClean()
		x.wantEmpty()
		if n != 8 || received != 1 {
			t.Errorf("%d runs, receive %d; want 8 in one receive", n, received)
		}
	})
}
