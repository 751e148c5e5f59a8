package sqsworker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// stepped is t on a machine whose wall clock was moved by d and whose monotonic clock was not. Package time has no function
// for it: a Time with a monotonic reading has its seconds from bit 30 of its first word on.
func stepped(t time.Time, d time.Duration) time.Time {
	out := t
	*(*uint64)(unsafe.Pointer(&out)) += uint64(int64(d/time.Second) << 30)
	if out.Sub(t) != 0 || out.Round(0).Sub(t.Round(0)) != d {
		panic("the layout of time.Time has changed")
	}
	return out
}

// machine has a wall clock that can be moved, and a monotonic one, which bubbles do not have.
type machine struct {
	booted, bubble time.Time
	moved          atomic.Int64
}

// outside was read outside of all bubbles: it has a monotonic reading.
var outside = time.Now()

func newMachine() *machine { return &machine{booted: outside, bubble: time.Now()} }

func (m *machine) now() time.Time {
	return stepped(m.booted.Add(time.Since(m.bubble)), time.Duration(m.moved.Load()))
}

func (m *machine) move(d time.Duration) { m.moved.Add(int64(d)) }

func (x *fixture) startOn(m *machine, h sqsonce.Handler, optFns ...func(*Options)) *job {
	x.Helper()
	j := x.newJob(x.c, h, optFns...)
	j.now = m.now
	j.run()
	return j
}

// TestSuspendEndsTheLease: the machine sleeps for an hour, and another worker gets the message. The monotonic clock and
// all timers stand still, so nothing is extended. The wall clock shows it at the next look at the leases.
func TestSuspendEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		srv := memsqs.New(func(o *memsqs.Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
		})
		defer srv.Close()
		x := newFixture(t, srv, setup{})
		x.send("a")
		m := newMachine()
		cancelled := make(chan time.Time, 1)
		j := x.startOn(m, func(ctx context.Context, _ *sqsonce.Message) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), sqsonce.ErrLeaseLost) {
				t.Errorf("cause: got %v, want ErrLeaseLost", context.Cause(ctx))
			}
			cancelled <- time.Now()
			return nil
		}) // its long poll is under way all the while
		time.Sleep(5 * time.Second)
		slept.Store(int64(time.Hour))
		m.move(time.Hour)
		woke := time.Now()
		if got := x.receive(12 * time.Hour); len(got) != 1 {
			t.Errorf("another consumer got %d messages, want 1", len(got))
		}
		if took := (<-cancelled).Sub(woke); took > 3*time.Second {
			t.Errorf("cancelled %s after the wake, want at the next look", took)
		}
		time.Sleep(time.Minute)
		j.stopClean()
		if del, change := x.calls(opDelete), x.calls(opChange); del != 0 || change != 0 {
			t.Errorf("%d deletes and %d changes with a lost lease", del, change)
		}
	})
}

// TestWallClockSetBack: the monotonic clock goes on, and no lease lasts longer.
func TestWallClockSetBack(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opChange, Prob: 1, Do: fault.Error, Code: "InternalError"}}}, func(x *fixture) {
		x.send("a")
		m := newMachine()
		cancelled := make(chan time.Duration, 1)
		begun := time.Now()
		j := x.startOn(m, func(ctx context.Context, msg *sqsonce.Message) error {
			if msg.ReceiveCount == 1 {
				<-ctx.Done()
				cancelled <- time.Since(begun)
			}
			return nil
		}, func(o *Options) { o.WaitTime = time.Second })
		time.Sleep(20 * time.Second)
		m.move(-time.Hour)
		if took := <-cancelled; took < 28*time.Second || took >= 30*time.Second {
			t.Errorf("cancelled after %s, want just before the 30 s are over", took)
		}
		j.stopEmptyAfter(time.Minute)
	})
}

// TestLateSuccessProvesNothing: the extension reaches SQS after the visibility timeout, when another consumer has the
// message, and SQS answers success all the same. The machine was suspended while it waited for the answer, so that the
// answer is there before the first look at the leases.
func TestLateSuccessProvesNothing(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	d := l.addTest("a", 1)
	start := d.lease.anchor
	l.now = func() time.Time { return stepped(start, 2*time.Minute) }
	l.extensionAnswered(change{d: d, handle: d.lease.handle, visibility: time.Minute}, nil, stepped(start, 110*time.Second), 0)
	if s := l.Stats(); d.state != gone || s.LeasesLost != 1 || s.NotExtended != 1 || s.Extended != 0 {
		t.Errorf("state %d, %+v; want the lease lost, and nothing extended", d.state, s)
	}
}

func TestLeaseProof(t *testing.T) {
	t.Parallel()
	now := time.Now()
	le := newLease("h", 1, receiveOrder{}, now, 30*time.Second, 0)
	if got := le.remaining(now.Add(time.Second)); got != 29*time.Second {
		t.Errorf("remaining 1 s after it was handed out: got %s, want 29 s", got)
	}
	if got := le.due.Sub(now); got != 15*time.Second {
		t.Errorf("due after %s, want half", got)
	}
	for visibility, want := range map[time.Duration]time.Duration{10 * time.Second: 4750 * time.Millisecond, 9 * time.Second: 2850 * time.Millisecond} {
		if got := extensionInterval(visibility, 0.5); got != want {
			t.Errorf("interval of %s: got %s, want %s", visibility, got, want)
		}
	}
	// An extension counts from before its call.
	le.extended(now.Add(10*time.Second), now.Add(14*time.Second), 30*time.Second, 30*time.Second, false, 0)
	if got := le.remaining(now.Add(14 * time.Second)); got != 26*time.Second {
		t.Errorf("remaining after an extension that took 4 s: got %s, want 26 s", got)
	}
}

func TestExtensionClamps(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tc := range []struct {
		age, limit, want time.Duration
		last             bool
	}{
		{time.Minute, 12 * time.Hour, 30 * time.Second, false},
		{12*time.Hour - 20*time.Second, 12 * time.Hour, 19 * time.Second, true},
		{12 * time.Hour, 12 * time.Hour, 0, true},
		{30 * time.Second, time.Minute, 30 * time.Second, true},
		{30*time.Second - 1, time.Minute, 30 * time.Second, true},
		{29 * time.Second, time.Minute, 30 * time.Second, false},
		{50 * time.Second, time.Minute, 10 * time.Second, true},
	} {
		le := lease{received: now.Add(-tc.age)}
		got, last := le.extension(now, 30*time.Second, tc.limit)
		if got != tc.want || last != tc.last {
			t.Errorf("age %s: got %s, last %t; want %s, %t", tc.age, got, last, tc.want, tc.last)
		}
	}
}
