package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const opChange = "ChangeMessageVisibilityBatch"

func TestExtensionsAreBatched(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(10)
		var r runs
		j := x.start(r.take(100 * time.Second))
		time.Sleep(3 * time.Minute)
		j.stopClean()
		// 100 s at an extension each 13.5 to 15 s.
		if got := x.calls(opChange); got > 8 {
			t.Errorf("%d calls to extend ten messages for 100 s, want at most 8", got)
		}
	})
}

func TestLostHandleCancelsTheHandler(t *testing.T) {
	for _, code := range []string{"ReceiptHandleIsInvalid", "AWS.SimpleQueueService.MessageNotInflight", "InvalidParameterValue", "SomethingNew"} {
		run(t, code, setup{faults: []fault.Rule{{Op: opChange, Nth: 1, Do: fault.FailEntries, Code: code}}}, func(x *fixture) {
			x.send("a")
			cause := make(chan error, 10)
			j := x.start(cancelledFirst(cause))
			began := time.Now()
			if err := <-cause; !errors.Is(err, sqsonce.ErrLeaseLost) {
				x.Errorf("cause: got %v, want ErrLeaseLost", err)
			}
			if took := time.Since(began); took > 16*time.Second {
				x.Errorf("cancelled after %s, want at the first extension", took)
			}
			time.Sleep(time.Second)
			if n := x.calls("DeleteMessageBatch"); n != 0 {
				x.Errorf("%d deletes with a lost lease", n)
			}
			if n := x.calls(opChange); n != 1 {
				x.Errorf("%d visibility changes, want only the refused one", n)
			}
			j.stopEmptyAfter(time.Minute)
			if got := j.Stats().LeasesLost; got != 1 {
				x.Errorf("LeasesLost: got %d, want 1", got)
			}
		})
	}
}

// cancelledFirst is a handler that waits for its context's end in the first receive, and returns its error.
func cancelledFirst(cause chan<- error) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		if m.ReceiveCount > 1 {
			return nil
		}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	}
}

// A handler is cancelled just before the visibility timeout ends that SQS has confirmed last: at MaxExtension, or after 12 h, at the latest.
func TestHandlerIsCancelledBeforeTheProvenEnd(t *testing.T) {
	for _, tc := range []struct {
		limit, want, early time.Duration
		rule               fault.Rule
	}{
		{0, 30 * time.Second, 2 * time.Second, fault.Rule{Prob: 1, Do: fault.Error, Code: "InternalError"}},
		{0, 12 * time.Hour, 5 * time.Second, fault.Rule{Nth: 1 << 30, Do: fault.Error}}, // also where the handler would take 13
		{100 * time.Second, 100 * time.Second, 5 * time.Second, fault.Rule{Nth: 1 << 30, Do: fault.Error}},
	} {
		tc.rule.Op = opChange
		run(t, fmt.Sprint(tc.want), setup{faults: []fault.Rule{tc.rule}}, func(x *fixture) {
			x.send("a")
			cancelled := make(chan error)
			j := x.start(cancelledFirst(cancelled), func(o *Options) { o.MaxExtension = tc.limit })
			began := time.Now()
			err := <-cancelled
			if took := time.Since(began); took >= tc.want || took < tc.want-tc.early || !errors.Is(err, sqsonce.ErrLeaseLost) {
				x.Errorf("cancelled after %s with %v, want ErrLeaseLost just before %s", took, err, tc.want)
			}
			if tc.rule.Prob == 0 && (x.log.has("extension failed") || x.log.has("refused")) {
				x.Error("an extension was refused: it asked for too long")
			}
			j.stopEmptyAfter(2 * time.Minute)
		})
	}
}

// TestSlowAnswersLoseNothing: all of SQS takes long, on the way there or back.
func TestSlowAnswersLoseNothing(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for _, delay := range []time.Duration{6 * time.Second, 12 * time.Second} {
				runParallel(t, fmt.Sprintf("fifo=%t after=%t %s", fifo, after, delay), setup{fifo: fifo}, func(x *fixture) {
					const messages = 25
					for i := range messages {
						x.send(fmt.Sprintf("g%d:%d", i%12, i))
					}
					var rules []fault.Rule // not for the startup check, which has a timeout
					for _, op := range []string{opReceive, opChange, opDelete} {
						rules = append(rules, fault.Rule{Op: op, Prob: 1, Do: fault.Delay, After: after, Delay: delay})
					}
					x.srv.Set(fault.Plan{Rules: rules})
					var r runs
					j := x.start(r.take(100 * time.Second))
					time.Sleep(20 * time.Minute)
					x.srv.Set(fault.Plan{}) // the stop waits for 5 s
					j.stopEmptyAfter(time.Minute)
					if s := j.Stats(); s.LeasesLost != 0 || s.Undeleted != 0 || len(r.list()) != messages {
						x.Errorf("%d runs of %d messages; %+v", len(r.list()), messages, s)
					}
				})
			}
		}
	}
}

// TestExtensionsOverlap: the first one hangs. The second one is sent beside it, and not when it has been given up.
func TestExtensionsOverlap(t *testing.T) {
	t.Parallel()
	bubble(t, setup{faults: []fault.Rule{{Op: opChange, Nth: 1, Do: fault.Delay, Delay: time.Hour}}}, func(x *fixture) {
		x.send("a")
		var r runs
		c := &countedClient{Client: x.c}
		j := x.startWith(c, r.take(40*time.Second))
		time.Sleep(22 * time.Second)
		if n := x.calls(opChange); n != 1 || c.changes.mostSoFar() != 2 {
			t.Errorf("%d extensions answered, %d at once; want 1 and 2", n, c.changes.most)
		}
		j.stopEmptyAfter(time.Minute)
		if s := j.Stats(); s.LeasesLost != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestOvertakenAnswer: the answer to an earlier extension comes after that to a later one. Each counts from its own start.
func TestOvertakenAnswer(t *testing.T) {
	t.Parallel()
	start := time.Now()
	le := newLease("h", 1, receiveOrder{}, start, 30*time.Second, 0)
	le.extended(start.Add(20*time.Second), start.Add(21*time.Second), 30*time.Second, 30*time.Second, false, 0)
	due := le.due
	le.extended(start.Add(15*time.Second), start.Add(22*time.Second), 30*time.Second, 30*time.Second, false, 0)
	if got := le.remaining(start.Add(22 * time.Second)); got != 28*time.Second || le.due != due {
		t.Errorf("remaining %s, due moved by %s; want 28 s of the later one", got, le.due.Sub(due))
	}
}

// TestFailedExtensionsAreLoggedOnce: once for each lease, however long it lasts.
func TestFailedExtensionsAreLoggedOnce(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opChange, Prob: 0.5, Do: fault.Error, Code: "InternalError"}}, seed: 7}, func(x *fixture) {
		x.send("a", "b")
		var r runs
		j := x.start(r.take(time.Hour), func(o *Options) { o.VisibilityTimeout = 2 * time.Minute })
		j.stopEmptyAfter(2 * time.Hour)
		if n := strings.Count(x.log.String(), "extension failed"); n != 2 || j.Stats().Extensions < 90 {
			t.Errorf("%d lines for two leases, %d calls", n, j.Stats().Extensions)
		}
	})
}

// TestHeartbeatEndsWithTheMessage: however a delivery ends, it is not extended any more. An extension after a release would
// hide the message from everyone.
func TestHeartbeatEndsWithTheMessage(t *testing.T) {
	for name, end := range map[string]error{
		"done":       nil,
		"failed":     sqsonce.RetryAfter(10*time.Hour, errTest),
		"rejected":   sqsonce.Reject(errTest),
		"lease lost": sqsonce.ErrLeaseLost,
	} {
		for _, fifo := range []bool{false, true} {
			run(t, fmt.Sprintf("%s fifo=%t", name, fifo), setup{fifo: fifo, maxReceives: 100}, func(x *fixture) {
				x.send("g:a", "h:b")
				j := x.start(func(_ context.Context, m *sqsonce.Message) error {
					if m.ReceiveCount > 1 {
						return nil
					}
					time.Sleep(40 * time.Second) // extended twice
					return end
				}, func(o *Options) { o.MaxAttempts = 1 })
				time.Sleep(2 * time.Minute)
				before := x.calls(opChange)
				if before == 0 {
					x.Error("nothing was extended")
				}
				time.Sleep(time.Hour)
				if n := x.calls(opChange) - before; n != 0 {
					x.Errorf("%d visibility changes after the end", n)
				}
				j.stopClean()
			})
		}
	}
}

// TestNoExtensionThatProvesNoMore: the visibility timeout that a message has ends with MaxExtension.
func TestNoExtensionThatProvesNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLoop(t, func(o *Options) { o.VisibilityTimeout, o.MaxExtension = time.Minute, time.Minute })
		d := l.addTest("a", 1)
		time.Sleep(30 * time.Second)
		l.extendDue()
		if n := l.counters.extensions.Load(); n != 0 || !d.lease.final {
			t.Errorf("%d extensions, final %t, want none and final", n, d.lease.final)
		}
		l.calls.Wait()
	})
}

// TestReleaseIsNotExtended: a release is under way when an extension is due. The extension could reach SQS after it.
func TestReleaseIsNotExtended(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	d := l.addTest("a", 1)
	d.lease.anchor, d.lease.due = time.Now().Add(-50*time.Second), time.Now()
	l.setState(d, releasing)
	l.extendDue() // a call would panic
	l.calls.Wait()
	if n := l.counters.extensions.Load(); n != 0 {
		t.Errorf("%d calls to extend what is given back", n)
	}
}

// TestReleaseWaitsForTheExtension: an extension is sent between 12 and 14 s, and reaches SQS 4.5 s later. It would undo a
// release sent at 16 s, and hide the message until 46 s or longer.
func TestReleaseWaitsForTheExtension(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opChange, Nth: 1, Do: fault.Delay, Delay: 4500 * time.Millisecond}}}, func(x *fixture) {
		x.send("a")
		again := make(chan time.Time, 1)
		began := time.Now()
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.ReceiveCount > 1 {
				again <- time.Now()
				return nil
			}
			time.Sleep(16 * time.Second)
			return sqsonce.RetryAfter(10*time.Second, errTest)
		})
		if took := (<-again).Sub(began); took > 30*time.Second {
			t.Errorf("came back after %s, want 10 s after the extension's answer", took)
		}
		j.stopClean()
	})
}

// TestExtensionsGoTogether: an extension goes a little before it is due along with others, but not one that waits to be tried
// again.
func TestExtensionsGoTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLoop(t)
		if l.extendDue(); l.heartbeat.pending() {
			t.Error("the heartbeat goes on without messages")
		}
		for i, c := range []struct{ failures, calls, want int }{{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}} {
			d := l.addTest(fmt.Sprint(i), 1)
			d.lease.anchor, d.lease.due = time.Now().Add(-50*time.Second), time.Now().Add(l.heartbeatWindow())
			d.lease.failures, d.lease.calls = c.failures, c.calls
			l.extendDue()
			if got := d.lease.calls - c.calls; got != c.want {
				t.Errorf("after %d failures, beside %d calls: %d extensions, want %d", c.failures, c.calls, got, c.want)
			}
		}
		d := l.addTest("late", 1)
		d.lease.anchor, d.lease.calls = time.Now().Add(-50*time.Second), 2
		l.extend([]*delivery{d})
		if got, want := time.Until(d.lease.due), 4*l.extensionPatience(); got != want {
			t.Errorf("beside 2 calls: the next extension after %s, want %s", got, want)
		}
		l.calls.Wait()
	})
}

// TestOneCallTriesExtensions: after a failure one call at a time is made, and the next one waits for its answer.
func TestOneCallTriesExtensions(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]int64{0: 3, 1: 1, 2: 2} {
		synctest.Test(t, func(t *testing.T) {
			l := newTestLoop(t)
			l.extensions.window = window
			for i := range 25 {
				d := l.addTest(fmt.Sprint(i), 1)
				d.lease.anchor, d.lease.due = time.Now().Add(-50*time.Second), time.Now()
			}
			l.extendDue()
			if got, waits := l.counters.extensions.Load(), l.extensions.until.After(time.Now()); got != want || waits != (window > 0) {
				t.Errorf("window %d: %d calls, and the next waits: %t; want %d calls", window, got, waits, want)
			}
			l.extensionsAnswered(visibilityChanged{start: time.Now()})
			if now := !l.heartbeat.at.After(time.Now()); now != (window > 0) {
				t.Errorf("window %d: more are sent at once after an answer: %t", window, now)
			}
			l.calls.Wait()
		})
	}
}

// TestExtensionTimes: how long extensions wait for others, and for an answer, depends on how long the visibility timeout is.
func TestExtensionTimes(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	for _, c := range []struct{ visibility, took, window, patience time.Duration }{
		{2 * time.Second, 0, 200 * time.Millisecond, 500 * time.Millisecond},
		{12 * time.Second, time.Second, 1200 * time.Millisecond, 2 * time.Second},
		{time.Minute, 2 * time.Second, 2 * time.Second, 5 * time.Second},
		{time.Minute, 6 * time.Second, 2 * time.Second, 9 * time.Second},
	} {
		l.opts.VisibilityTimeout, l.extensionTook = c.visibility, c.took
		if window, patience := l.heartbeatWindow(), l.extensionPatience(); window != c.window || patience != c.patience {
			t.Errorf("%+v: got %s and %s", c, window, patience)
		}
	}
	d := l.addTest("a", 1)
	for left, want := range map[time.Duration]time.Duration{
		time.Second / 2: extensionDelay, 8 * time.Second: 2 * time.Second, time.Minute: 5 * time.Second,
	} {
		d.lease.span = left
		if got := l.mostExtensionDelay(d, d.lease.anchor); got != want {
			t.Errorf("with %s left: the next try after %s, want %s", left, got, want)
		}
	}
}

// TestFailedExtensionsBackOff: the delay doubles, and half of it is random.
func TestFailedExtensionsBackOff(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	d := l.addTest("a", 1)
	now := d.lease.anchor
	for _, delay := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		failures := d.lease.failures
		for jitter, want := range map[float64]time.Duration{0: delay / 2, 0.5: delay * 3 / 4, 1: delay} {
			d.lease.failures, l.extendAgain = failures, time.Time{}
			if l.extensionFailed(d, errTest, now, jitter); d.lease.due.Sub(now) != want {
				t.Errorf("after %d failures, jitter %v: %s, want %s", d.lease.failures, jitter, d.lease.due.Sub(now), want)
			}
		}
	}
}

// TestReleaseCalls: a release asks for nothing beyond SQS's 12 h, is sent while it has an effect, and again if its call fails.
func TestReleaseCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLoop(t)
		expired, d := l.addTest("a", 1), l.addTest("b", 1)
		l.setState(expired, releasing)
		l.setState(d, releasing)
		expired.lease.span = 0
		d.lease.received = time.Now().Add(30*time.Minute - maxVisibility)
		d.delay = time.Hour
		l.releases.inCalls = 2
		l.sendReleases([]*delivery{expired})
		if expired.state != gone || l.releases.calls != 0 || l.releases.inCalls != 1 {
			t.Errorf("expired: state %d, %d calls, %d in calls", expired.state, l.releases.calls, l.releases.inCalls)
		}
		l.sendReleases([]*delivery{d})
		if l.releases.calls != 1 {
			t.Errorf("%d calls under way, want 1", l.releases.calls)
		}
		e := (<-l.events).(visibilityChanged) // the client panics
		if got, want := e.changes[0].visibility, 30*time.Minute-time.Second; got != want {
			t.Errorf("given back for %s, want %s", got, want)
		}
		e.arrive(l)
		if l.releases.calls != 0 || l.releases.inCalls != 0 || l.releases.slow.failures != 1 || len(l.releases.failed[1]) != 1 {
			t.Errorf("after the failure: %d calls, %d in calls, %+v, %v", l.releases.calls, l.releases.inCalls, l.releases.slow, l.releases.failed)
		}
		l.calls.Wait()
	})
}
