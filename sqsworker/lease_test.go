package sqsworker

import (
	"testing"
	"time"
)

func TestLeaseProof(t *testing.T) {
	t.Parallel()
	now := time.Now()
	le := newLease("h", 1, order{}, now, 30*time.Second, 0)
	if got := le.left(now); got != 29*time.Second {
		t.Errorf("left at receipt: got %s, want 29 s: a guard of 1 s", got)
	}
	if short := newLease("h", 1, order{}, now, 2*time.Second, 0); short.left(now) != 1800*time.Millisecond {
		t.Errorf("left of 2 s: got %s, want a tenth as guard", short.left(now))
	}
	if got := le.due.Sub(now); got != 15*time.Second {
		t.Errorf("due after %s, want half", got)
	}
	if got := beat(9*time.Second, 0); got != 3*time.Second {
		t.Errorf("beat of 9 s: got %s, want a third", got)
	}
	// An extension counts from before its call.
	le.extended(now.Add(10*time.Second), now.Add(14*time.Second), 30*time.Second, 30*time.Second, false, 0)
	if got := le.left(now.Add(14 * time.Second)); got != 26*time.Second {
		t.Errorf("left after an extension that took 4 s: got %s, want 26 s", got)
	}
}

func TestElapsedIsTheLargerClock(t *testing.T) {
	t.Parallel()
	start := time.Now()
	if got := elapsed(start.Add(time.Minute), start); got != time.Minute {
		t.Errorf("got %s, want 1 min", got)
	}
	// A suspend: the wall clock goes on, the monotonic one stands still. Round(0) strips the latter.
	if got := elapsed(start.Round(0).Add(time.Hour), start); got != time.Hour {
		t.Errorf("got %s, want 1 h", got)
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
		{50 * time.Second, time.Minute, 10 * time.Second, true},
	} {
		le := lease{received: now.Add(-tc.age)}
		got, last := le.extension(now, 30*time.Second, tc.limit)
		if got != tc.want || last != tc.last {
			t.Errorf("age %s: got %s, last %t; want %s, %t", tc.age, got, last, tc.want, tc.last)
		}
	}
}
