package sqsworker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestSlowAnswersAreWaitedFor: SQS takes 2.5 s for everything. A first extension is given up after a sixth of the
// visibility timeout, so that a call that hangs leaves time for others; if all were, no lease would live.
func TestSlowAnswersAreWaitedFor(t *testing.T) {
	rule := fault.Rule{Prob: 1, Do: fault.Delay, Delay: 2500 * time.Millisecond}
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b", "c")
		x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
		var r runs
		j := x.start(r.take(time.Minute), func(o *Options) { o.Visibility = 12 * time.Second })
		time.Sleep(2 * time.Minute)
		j.stopClean()
		x.wantEmpty()
		if s := j.Stats(); s.LeasesLost != 0 || len(r.list()) != 3 {
			t.Errorf("%v; %+v", r.list(), s)
		}
	})
}

// TestExtensionBesideADelete: the delete reaches SQS first and its answer comes late; the extension finds no message.
func TestExtensionBesideADelete(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		for _, deleted := range []bool{true, false} {
			t.Run(fmt.Sprintf("fifo=%t deleted=%t", fifo, deleted), func(t *testing.T) {
				answer := error(nil)
				if !deleted {
					answer = errTest
				}
				w, err := New(stubClient{}, goodURL, ok)
				if err != nil {
					t.Fatal(err)
				}
				l := newLoop(t.Context(), w, queue{})
				d := l.admit(&incoming{m: &sqsonce.Message{ID: "a", Group: "g"}}, newLease("h", 1, order{}, time.Now(), 30*time.Second, 0))
				if fifo {
					l.advance(l.joinGroup(d))
				}
				l.set(d, deleting)
				d.sent = true
				l.extended(change{d: d, handle: "h"}, &entryError{code: "ReceiptHandleIsInvalid"}, time.Now(), 0)
				if d.state != deleting {
					t.Fatal("given up before the delete's answer")
				}
				l.deleted(d, "h", answer)
				if d.state != gone || l.finished.undeleted("a") == deleted || (l.counters.leasesLost.Load() == 0) != deleted {
					t.Errorf("state %d, undeleted %t, %d leases lost", d.state, l.finished.undeleted("a"), l.counters.leasesLost.Load())
				}
			})
		}
	}
}

// TestRefusedBetweenTwoDeletes: the first delete failed, and the next has not been sent when the handle is refused. It
// never is.
func TestRefusedBetweenTwoDeletes(t *testing.T) {
	t.Parallel()
	w, err := New(stubClient{}, goodURL, ok)
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(t.Context(), w, queue{})
	d := l.admit(&incoming{m: &sqsonce.Message{ID: "a"}}, newLease("h", 1, order{}, time.Now(), 30*time.Second, 0))
	l.set(d, deleting)
	d.sent = true
	l.deleted(d, "h", errTest)
	l.extended(change{d: d, handle: "h"}, &entryError{code: "ReceiptHandleIsInvalid"}, time.Now(), 0)
	if d.state != gone || !l.finished.undeleted("a") {
		t.Errorf("state %d, remembered %t; want it given up and remembered", d.state, l.finished.undeleted("a"))
	}
}

// TestFailedExtensionsAreLoggedOnce: for a lease, however long it lives; nor is anything else logged again and again.
func TestFailedExtensionsAreLoggedOnce(t *testing.T) {
	rule := fault.Rule{Op: opChange, Prob: 0.5, Do: fault.Error, Code: "InternalError"}
	bubble(t, setup{faults: []fault.Rule{rule}, seed: 7}, func(x *fixture) {
		x.send("a", "b")
		var r runs
		j := x.start(r.take(time.Hour), func(o *Options) { o.Visibility = 2 * time.Minute })
		time.Sleep(2 * time.Hour)
		j.stopClean()
		x.wantEmpty()
		if n := strings.Count(x.log.text.String(), "extension failed"); n != 2 || j.Stats().Extensions < 90 {
			t.Errorf("%d lines for two leases, %d calls", n, j.Stats().Extensions)
		}
	})
}
