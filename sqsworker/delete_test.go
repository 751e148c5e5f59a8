package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const opDelete = "DeleteMessageBatch"

// TestDeleteOutlivesTheStop: cancelling the worker's context does not cancel a delete under way, and one that lingers is sent.
func TestDeleteOutlivesTheStop(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opDelete, Prob: 1, Do: fault.Delay, Delay: time.Second}}}, func(x *fixture) {
		x.sendMany(5)
		x.send("later")
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "later" {
				time.Sleep(time.Second)
			}
			return nil
		}, func(o *Options) { o.DeleteLinger = 100 * time.Millisecond })
		j.stopEmptyAfter(500 * time.Millisecond)
		if s := j.Stats(); s.Drained != 1 || s.Done != 6 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// TestFinishedWithoutDelete: the handler succeeded and the delete was refused. The next delivery is deleted without a run.
func TestFinishedWithoutDelete(t *testing.T) {
	bothKinds(t, setup{faults: []fault.Rule{{Op: opDelete, Nth: 1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}}}, func(x *fixture) {
		x.send("g:a", "g:b")
		var r runs
		j := x.start(r.take(time.Second))
		time.Sleep(10 * time.Second)
		if got := j.Stats().Undeleted; got == 0 {
			x.Error("the refused delete is not counted")
		}
		j.stopEmptyAfter(time.Minute)
		for _, b := range []string{"g:a", "g:b"} {
			if got := r.count(b); got != 1 {
				x.Errorf("%s: %d runs, want 1", b, got)
			}
		}
		if s := j.Stats(); s.Undeleted != 0 || s.Repeated == 0 {
			x.Errorf("after the second delivery: %+v, want none undeleted", s)
		}
	})
}

func TestUndeletedIsReported(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opDelete, Prob: 1, Do: fault.Error, Code: "InternalError"}}}, func(x *fixture) {
		x.send("a")
		j := x.start(ok)
		time.Sleep(2 * time.Second)
		err := j.stop()
		if e, is := errors.AsType[*StopError](err); !is || e.Undeleted != 1 {
			t.Errorf("Run: got %v, want a StopError with one undeleted", err)
		}
	})
}

// TestNoDeleteWithAnExpiredLease: in most cases the heartbeat finds the lease over first; after a suspend it may not.
func TestNoDeleteWithAnExpiredLease(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	d := l.addTest("a", 1)
	d.lease.anchor = time.Now().Add(-d.lease.span)
	l.delete(d)
	l.deletes.inCalls++
	l.sendDeletes([]*delivery{d}) // a call would panic
	l.calls.Wait()
	if d.state != gone || !l.finished.undeleted["a"] || l.counters.deletes.Load() != 0 || l.deletes.inCalls != 0 {
		t.Errorf("state %d, finished %t, %d calls, %d in calls", d.state, l.finished.has("a"), l.counters.deletes.Load(), l.deletes.inCalls)
	}
}

// TestExtensionBesideADelete: the delete reaches SQS first, and its answer comes after that of the extension, which finds no
// message.
func TestExtensionBesideADelete(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		for _, deleted := range []bool{true, false} {
			t.Run(fmt.Sprintf("fifo=%t deleted=%t", fifo, deleted), func(t *testing.T) {
				answer := error(nil)
				if !deleted {
					answer = errThrottled
				}
				l := newTestLoop(t)
				d := l.addTest("a", 1)
				if fifo {
					d.m.Group = "g"
					l.advance(l.joinGroup(d))
				}
				l.setState(d, deleting)
				d.inDelete = 1
				l.extensionAnswered(change{d: d, handle: d.lease.handle}, &entryError{code: "ReceiptHandleIsInvalid"}, time.Now(), 0)
				if d.state != deleting {
					t.Fatal("lease lost before the delete's answer")
				}
				l.deleteAnswered(d, d.lease.handle, answer, false)
				if d.state != gone || l.finished.undeleted["a"] == deleted || (l.counters.leasesLost.Load() == 0) != deleted {
					t.Errorf("state %d, undeleted %t, %d leases lost", d.state, l.finished.undeleted["a"], l.counters.leasesLost.Load())
				}
			})
		}
	}
}

// errThrottled is the answer for an entry that had no effect.
var errThrottled = &entryError{code: "RequestThrottled", senderFault: true}

// TestRefusedBetweenTwoDeletes: the first delete failed, and the extension is refused before the next one is sent. If the
// first one had no effect, the lease is lost, and the next one is never sent. If its outcome is unknown, the message may be
// deleted, and the answer to the next delete decides; a further one without an answer does not.
func TestRefusedBetweenTwoDeletes(t *testing.T) {
	t.Parallel()
	dead := &entryError{code: "InvalidParameterValue", message: "The receipt handle has expired.", senderFault: true}
	for name, tc := range map[string]struct {
		answers []error // the extension is refused after the first
		gone    bool
		lost    int64
	}{
		"throttled":               {[]error{errThrottled}, true, 1},
		"unknown":                 {[]error{errTest}, false, 0},
		"entry failed":            {[]error{&entryError{code: "InternalError"}}, false, 0},
		"unknown again":           {[]error{errTest, errTest}, false, 0},
		"unknown, throttled":      {[]error{errTest, errThrottled}, false, 0},
		"unknown, then deleted":   {[]error{errTest, errTest, nil}, true, 0},
		"unknown, then no handle": {[]error{errTest, dead}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestLoop(t)
			d := l.addTest("a", 1)
			l.setState(d, deleting)
			for i, answer := range tc.answers {
				d.inDelete++
				l.deleteAnswered(d, d.lease.handle, answer, false)
				if i == 0 {
					l.extensionAnswered(change{d: d, handle: d.lease.handle}, &entryError{code: "ReceiptHandleIsInvalid"}, time.Now(), 0)
				}
			}
			if (d.state == gone) != tc.gone || l.counters.leasesLost.Load() != tc.lost || l.finished.undeleted["a"] != (tc.lost > 0) {
				t.Errorf("state %d, %d leases lost, undeleted %t", d.state, l.counters.leasesLost.Load(), l.finished.undeleted["a"])
			}
		})
	}
}

// TestExtensionsBesideDeletes: deletes are answered late, or never at their first try, and extensions that are due meanwhile
// find no message. That loses nothing, and is worth no line in the log.
func TestExtensionsBesideDeletes(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"answered late": {Op: opDelete, Prob: 1, Do: fault.Delay, After: true, Delay: 3 * time.Second},
		"overdue":       {Op: opDelete, Prob: 1, Do: fault.Delay, After: true, Delay: 7 * time.Second},
		"not answered":  {Op: opDelete, Nth: 1, Times: 3, Do: fault.LoseReply},
		"hang":          {Op: opDelete, Nth: 1, Times: 2, Do: fault.Delay, After: true, Delay: time.Hour},
	} {
		for _, fifo := range []bool{false, true} {
			runParallel(t, fmt.Sprintf("%s fifo=%t", name, fifo), setup{fifo: fifo, faults: []fault.Rule{rule}}, func(x *fixture) {
				for i := range 50 {
					x.send(fmt.Sprintf("g%d:%d", i%20, i))
				}
				var r runs
				j := x.start(r.take(14*time.Second), func(o *Options) { o.Concurrency = 50 })
				time.Sleep(5 * time.Minute)
				x.srv.Set(fault.Plan{})
				j.stopEmptyAfter(0)
				if s := j.Stats(); s.LeasesLost != 0 || s.Undeleted != 0 || len(r.list()) != 50 || s.Extensions == 0 {
					x.Errorf("%d runs; %+v", len(r.list()), s)
				}
				if x.log.has("lease lost") || x.log.has("extension failed") {
					x.Error("a refused extension beside a delete is logged")
				}
			})
		}
	}
}

func TestFinishedForgetsTheOldest(t *testing.T) {
	t.Parallel()
	id := func(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
	var f finished
	for i := range maxFinished + 5 {
		f.add(id(i), i%2 == 0)
	}
	for i, want := range map[int]bool{0: false, 4: false, 5: true, maxFinished + 4: true} {
		if got := f.has(id(i)); got != want {
			t.Errorf("has the message before the last %d: got %t, want %t", maxFinished+4-i, got, want)
		}
	}
	if f.undeleted[id(5)] || !f.undeleted[id(6)] {
		t.Error("does not know which deletes were confirmed")
	}
	if !f.add(id(6), false) || f.add(id(6), false) {
		t.Error("does not say whether the delete had been confirmed before")
	}
	if f.undeleted[id(6)] || len(f.undeleted) != maxFinished {
		t.Errorf("after the delete: undeleted %t, %d IDs, want %d", f.undeleted[id(6)], len(f.undeleted), maxFinished)
	}
}

// A message whose deletes fail again and again is one line.
func TestFailedDeletesAreLoggedOnce(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opDelete, Nth: 1, Times: 3, Do: fault.FailEntries, Code: "InternalError"}}}, func(x *fixture) {
		x.send("a")
		j := x.start(ok)
		j.stopEmptyAfter(time.Minute)
		if n := x.log.count("delete failed"); n != 1 {
			t.Errorf("%d lines, want 1", n)
		}
	})
}

func TestEntryResults(t *testing.T) {
	t.Parallel()
	failed := []sqstypes.BatchResultErrorEntry{
		{Id: aws.String("2"), Code: aws.String("InternalError"), Message: aws.String("Value handle-2 for parameter ReceiptHandle is invalid.")}, {Id: aws.String("99")},
	}
	got := newResults(4, nil)
	for _, id := range []*string{aws.String("1"), nil, aws.String("x"), aws.String("-1")} {
		got.succeeded(id)
	}
	got.failed(failed, func(i int) string { return fmt.Sprint("handle-", i) })
	if text := got[2].Error(); strings.Contains(text, "handle-2") || !strings.Contains(text, "is invalid") {
		t.Errorf("error %q, want SQS's text without the handle", text)
	}
	if got[1] != nil || errorCode(got[2]) != "InternalError" {
		t.Errorf("answered entries: %v", got)
	}
	if !errors.Is(got[0], errMissing) || !errors.Is(got[3], errMissing) {
		t.Errorf("entries that the answer does not name: got %v, want errors", got)
	}
	for _, err := range newResults(2, errTest) {
		if !errors.Is(err, errTest) {
			t.Errorf("failed call: %v", err)
		}
	}
}

func TestUnanswered(t *testing.T) {
	t.Parallel()
	q := batchQueue{pending: make([]*delivery, 3), inCalls: 2}
	if n := q.unanswered(); n != 5 {
		t.Errorf("%d, want those that wait to be sent and those in calls", n)
	}
	q.slow.failures = 1
	if n := q.unanswered(); n != 2 {
		t.Errorf("while calls fail: %d, want those in calls only: the others wait for a retry", n)
	}
}

// A stop waits for flushTimeout only, and tries again at least ten times meanwhile.
func TestRetriesOfAStop(t *testing.T) {
	t.Parallel()
	var l loop
	if most := l.retryLimit(); most != 5*time.Second {
		t.Errorf("waits up to %s for a retry, want 5s", most)
	}
	l.stopping.begun = true
	if most := l.retryLimit(); most > flushTimeout/10 {
		t.Errorf("waits up to %s for a retry in a stop of %s", most, flushTimeout)
	}
}
