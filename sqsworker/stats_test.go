package sqsworker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// wantSum checks that the states of a snapshot add up.
func wantSum(t *testing.T, s Stats) {
	t.Helper()
	if sum := s.Running + s.Waiting + s.Held + s.Rejecting + s.Deleting + s.Releasing; sum != s.InFlight {
		t.Errorf("the states add up to %d: %+v", sum, s)
	}
}

// TestStatsAddUp: in every snapshot of a worker whose messages go through all states, and when its leases are lost.
func TestStatsAddUp(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo=%t", fifo), func(t *testing.T) {
			bubble(t, setup{fifo: fifo, maxReceives: 5, faults: []fault.Rule{
				{Op: opDelete, Prob: 0.3, Do: fault.FailEntries, Code: "InternalError"},
				{Op: opChange, Prob: 0.02, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"},
				{Prob: 1, Do: fault.Delay, Delay: 50 * time.Millisecond},
			}}, func(x *fixture) {
				for i := range 300 {
					x.send(fmt.Sprintf("g%d:%d", i%40, i))
				}
				j := x.start(func(_ context.Context, m *sqsonce.Message) error {
					time.Sleep(100 * time.Millisecond)
					switch {
					case strings.HasSuffix(m.Body, "3"):
						return sqsonce.Reject(errTest)
					case strings.HasSuffix(m.Body, "5") && m.ReceiveCount == 1:
						return sqsonce.RetryAfter(time.Second, sqsonce.ErrInProgress)
					case strings.HasSuffix(m.Body, "7"):
						time.Sleep(10 * time.Second) // needs extensions
					case strings.HasSuffix(m.Body, "9"):
						return sqsonce.RetryAfter(0, errTest)
					}
					return nil
				}, func(o *Options) { o.VisibilityTimeout, o.MaxHeld, o.StopTimeout = 5*time.Second, 10, 5*time.Second })
				var most Stats
				for range 6000 {
					time.Sleep(10 * time.Millisecond)
					s := j.Stats()
					wantSum(t, s)
					most.Waiting, most.Held, most.Running = max(most.Waiting, s.Waiting), max(most.Held, s.Held), max(most.Running, s.Running)
					most.Rejecting, most.Deleting = max(most.Rejecting, s.Rejecting), max(most.Deleting, s.Deleting)
					most.Releasing, most.Receiving = max(most.Releasing, s.Releasing), max(most.Receiving, s.Receiving)
				}
				if min(most.Waiting, most.Held, most.Running, most.Rejecting, most.Deleting, most.Releasing, most.Receiving) == 0 {
					t.Errorf("a state was never seen: at most %+v", most)
				}
				_ = j.stop()
				s := j.Stats()
				if wantSum(t, s); s.Receiving != 0 || s.Running+s.Waiting+s.Held != 0 || s.Intake != "" {
					t.Errorf("after Run: %+v", s)
				}
				time.Sleep(time.Minute) // handlers that the stop has abandoned return
			})
		})
	}
}

// TestStatsOfExtensions: one that SQS refused, or did not answer, extended nothing. Hooks get its error, and no end.
func TestStatsOfExtensions(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.srv.Set(fault.Plan{Rules: []fault.Rule{
			{Op: opChange, Nth: 1, Do: fault.Error, Code: "InternalError"},
			{Op: opChange, Nth: 3, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"},
		}})
		x.send("a", "b") // b waits, and is extended too
		var book hookBook
		j := x.start(waits(true), book.option, func(o *Options) { o.Concurrency = 1 })
		time.Sleep(20 * time.Second)
		if s := j.Stats(); s.Extended != 1 || s.NotExtended != 1 || s.Extensions != 2 {
			t.Errorf("after a failure and a success: %+v", s)
		}
		book.locked(func() {
			e := book.extended
			if len(e) != 2 || e[0].Err == nil || !e[0].Until.IsZero() || e[1].Err != nil || time.Until(e[1].Until) < 20*time.Second {
				t.Errorf("extensions of the handler that runs: %+v, want one that failed and one", e)
			}
		})
		time.Sleep(15 * time.Second)
		if s := j.Stats(); s.Extended != 1 || s.NotExtended != 2 || s.LeasesLost != 1 {
			t.Errorf("after a refusal: %+v", s)
		}
		_ = j.stop()
	})
}
