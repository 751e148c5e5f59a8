package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const opDelete = "DeleteMessageBatch"

func TestDeletesAreRetried(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"entries fail": {Op: opDelete, Nth: 1, Times: 3, Do: fault.FailEntries, Code: "InternalError"},
		"some entries": {Op: opDelete, Nth: 1, Times: 3, Do: fault.FailEntries, Entries: []int{0, 2}, Code: "InternalError"},
		"not answered": {Op: opDelete, Nth: 1, Times: 2, Do: fault.DropEntries},
		"reply lost":   {Op: opDelete, Nth: 1, Times: 2, Do: fault.LoseReply},
		"connection":   {Op: opDelete, Nth: 1, Times: 2, Do: fault.Reset},
		"call fails":   {Op: opDelete, Nth: 1, Times: 3, Do: fault.Error, Code: "InternalError"},
		"hangs":        {Op: opDelete, Nth: 1, Do: fault.Delay, Delay: time.Hour},
		"half fail":    {Op: opDelete, Prob: 0.5, Do: fault.FailEntries, Code: "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{faults: []fault.Rule{rule}, seed: 3}, func(x *fixture) {
				x.send("a", "b", "c", "d")
				var r runs
				j := x.start(r.take(time.Second))
				time.Sleep(90 * time.Second)
				x.wantEmpty()
				j.stopClean()
				if got := len(r.list()); got != 4 {
					t.Errorf("%d runs of 4 messages", got)
				}
				if s := j.Stats(); s.Undeleted != 0 || s.LeasesLost != 0 {
					t.Errorf("stats: %+v", s)
				}
			})
		})
	}
}

// TestDeleteOutlivesTheStop: a delete under way when the worker's context ends is not cancelled with it.
func TestDeleteOutlivesTheStop(t *testing.T) {
	rule := fault.Rule{Op: opDelete, Prob: 1, Do: fault.Delay, Delay: time.Second}
	bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
		for i := range 5 {
			x.send(fmt.Sprint(i))
		}
		j := x.start(ok)
		time.Sleep(500 * time.Millisecond)
		j.stopClean()
		x.wantEmpty()
	})
}

func TestDeletesFlushAtStop(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b")
		j := x.start(func(context.Context, *sqsonce.Message) error {
			time.Sleep(3 * time.Second)
			return nil
		}, func(o *Options) { o.DeleteLinger = time.Second })
		time.Sleep(time.Second)
		j.stopClean()
		x.wantEmpty()
		if s := j.Stats(); s.Drained != 2 || s.Done != 2 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// TestDoneIsRememberedWithoutDelete: the handler succeeded and the delete was refused. The next delivery is deleted
// without running.
func TestDoneIsRememberedWithoutDelete(t *testing.T) {
	rule := fault.Rule{Op: opDelete, Nth: 1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo=%t", fifo), func(t *testing.T) {
			bubble(t, setup{fifo: fifo, faults: []fault.Rule{rule}}, func(x *fixture) {
				x.send("g:a", "g:b")
				var r runs
				j := x.start(r.take(time.Second))
				time.Sleep(10 * time.Second)
				if got := j.Stats().Undeleted; got == 0 {
					t.Error("the refused delete is not counted")
				}
				time.Sleep(time.Minute)
				j.stopClean()
				x.wantEmpty()
				for _, b := range []string{"g:a", "g:b"} {
					if got := r.count(b); got != 1 {
						t.Errorf("%s: %d runs, want 1", b, got)
					}
				}
				if got := j.Stats().Undeleted; got != 0 {
					t.Errorf("Undeleted: got %d, want 0 after the second delivery", got)
				}
			})
		})
	}
}

func TestUndeletedIsReported(t *testing.T) {
	rule := fault.Rule{Op: opDelete, Prob: 1, Do: fault.Error, Code: "InternalError"}
	bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
		x.send("a")
		j := x.start(ok)
		time.Sleep(2 * time.Second)
		err := j.stop()
		if e, is := errors.AsType[*StopError](err); !is || e.Undeleted != 1 {
			t.Errorf("Run: got %v, want a StopError with one undeleted", err)
		}
	})
}

// TestSecondCopyHandsOverItsHandle: SQS delivers a message again while its first delivery is handled here.
func TestSecondCopyHandsOverItsHandle(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Duplicate, fault.ExpireEarly} {
		for _, fifo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s fifo=%t", kind, fifo), func(t *testing.T) {
				rule := fault.Rule{Op: "ReceiveMessage", Nth: 1, Times: 4, Do: kind}
				bubble(t, setup{fifo: fifo, faults: []fault.Rule{rule}}, func(x *fixture) {
					x.send("g:a", "g:b", "h:c")
					var r runs
					j := x.start(r.take(40 * time.Second))
					time.Sleep(10 * time.Minute)
					j.stopClean()
					x.wantEmpty()
					for _, b := range []string{"g:a", "g:b", "h:c"} {
						if got := r.count(b); got != 1 {
							t.Errorf("%s: %d runs, want 1; %+v", b, got, j.Stats())
						}
					}
				})
			})
		}
	}
}
