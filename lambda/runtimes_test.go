package lambda

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
)

func TestRunTimes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		fast, slow int // runs of 1 s, then of 10 s
		left       time.Duration
		want       bool
	}{
		{"no run", 0, 0, 0, true},
		{"one that fits", 1, 0, time.Second, true},
		{"one that does not", 1, 0, time.Second - 1, false},
		{"5% are slower", 95, 5, time.Second, true},
		{"6% are slower", 94, 6, time.Second, false},
		{"6% are slower, and fit", 94, 6, 10 * time.Second, true},
		{"the latest 100 count", 0, 6, time.Second, false},
		{"the latest 100 count, the others do not", 1000, 5, time.Second, true},
		{"none of those before the latest 100 counts", 100, 100, 9 * time.Second, false},
	} {
		var r runTimes
		for range tt.fast {
			r.add(time.Second)
		}
		for range tt.slow {
			r.add(10 * time.Second)
		}
		if got := r.fit(tt.left); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestNoStartWithoutTimeToEnd: a message that, as the run times say, cannot end before the margin is not started, and is
// reported as failed with the rest of its group. The delays of others are not theirs: they keep their visibility timeout.
func TestNoStartWithoutTimeToEnd(t *testing.T) {
	for name, fifo := range map[string]bool{"standard": false, "fifo": true} {
		runWithQueue(t, name, fifo, nil, func(x *fixture) {
			x.send("a1", "a2", "a3", "a4")
			var r runs
			var longest time.Duration
			f := x.wrap(r.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				defer func(begun time.Time) { longest = max(longest, time.Since(begun)) }(time.Now())
				return takes(8*time.Second)(ctx, m)
			}), func(o *Options) { o.Concurrency = 1 })
			begun := time.Now()
			if got := x.failed(f, 20*time.Second, x.receive()); got != "a3 a4" || r.count() != 2 {
				x.Errorf("failed %q, %d started; want a3 a4 and 2", got, r.count())
			}
			if took := time.Since(begun); took != 16*time.Second || longest != 8*time.Second {
				x.Errorf("returned after %v, the longest run %v; want 16s: no handler is cut off", took, longest)
			}
			if got := x.visibleIn()["a3"]; got != visibility-16*time.Second {
				x.Errorf("visible in %v, want the visibility timeout", got)
			}
			if x.log.count("not_started=2") != 1 {
				x.Errorf("not counted as not started:\n%s", &x.log)
			}
		})
	}
}

// TestOneMessageIsStartedWhateverTheRunTimesSay: or a function whose handlers were slow would refuse all for ever. The run times are those
// of failures too.
func TestOneMessageIsStartedWhateverTheRunTimesSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r runs
		took := 50 * time.Second
		err := errTest
		f := wrap(t, r.wrap(func(context.Context, *sqsonce.Message) error { time.Sleep(took); return err }))
		invoke(t, f, timeout(t, time.Minute), batch("1"))
		took, err = time.Second, nil
		if got := invoke(t, f, timeout(t, 20*time.Second), batch("2", "3", "4")); got != "3 4" && got != "2 3" && got != "2 4" {
			t.Errorf("failed %q, want all but one", got)
		}
		for range 18 {
			invoke(t, f, timeout(t, 20*time.Second), batch("2", "3"))
		}
		if got := invoke(t, f, timeout(t, 20*time.Second), batch("2", "3")); got != "" {
			t.Errorf("failed %q, want none: 19 of 20 runs took a second", got)
		}
		// Where no time is left at all none is started.
		before := r.count()
		if got := invoke(t, f, timeout(t, 500*time.Millisecond), batch("2")); got != "2" || r.count() != before {
			t.Errorf("failed %q, %d started; want 2 and none", got, r.count()-before)
		}
	})
}

// TestCutOffRunsAreNoRunTimes: handlers that the margin cancels, or that are abandoned, do not keep the others from running
// in the next invocation: what they were given is all the time of an invocation.
func TestCutOffRunsAreNoRunTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlers{"1": takes(time.Hour), "2": ignores(time.Minute), "": takes(time.Second)}
		f := wrap(t, h.handle)
		if got := invoke(t, f, timeout(t, 20*time.Second), batch("1", "2")); got != "1 2" {
			t.Errorf("failed %q, want both", got)
		}
		time.Sleep(time.Hour)
		if got := invoke(t, f, timeout(t, 19*time.Second), batch("3", "4", "5")); got != "" {
			t.Errorf("failed %q, want none", got)
		}
	})
}

// TestHalvedRunsAreNoRunTimes: nor does one that was cut off for those behind it in their last receive.
func TestHalvedRunsAreNoRunTimes(t *testing.T) {
	withQueue(t, true, nil, func(x *fixture) {
		x.redrive(2)
		x.send("a1", "a2")
		f := x.wrap(byBody(handlers{"a1": waits}))
		for _, want := range []string{"a1 a2", ""} {
			if got := x.failed(f, 30*time.Second, x.receive()); got != want {
				t.Errorf("failed %q, want %q", got, want)
			}
			time.Sleep(time.Minute)
		}
		x.send("b1", "b2")
		if got := x.failed(f, 10*time.Second, x.receive()); got != "" {
			t.Errorf("failed %q, want none", got)
		}
	})
	withQueue(t, true, nil, func(x *fixture) { // without a policy nothing is cut off
		x.send("a1", "a2")
		if got := x.failed(x.wrap(byBody(handlers{"a1": share(60)})), 30*time.Second, x.receive()); got != "a2" {
			t.Errorf("failed %q, want a2 alone, which has no time left", got)
		}
	})
}

// TestLastReceiveIsStarted: SQS would move a message in its last receive without a run, so it is started whatever the run times
// say.
func TestLastReceiveIsStarted(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.redrive(1)
		x.send("a1", "a2", "a3")
		left := 3
		f := x.wrap(func(context.Context, *sqsonce.Message) error {
			if left--; left > 0 {
				time.Sleep(8 * time.Second)
			}
			return nil
		}, func(o *Options) { o.Concurrency = 1 })
		if got := x.failed(f, 20*time.Second, x.receive()); got != "" {
			t.Errorf("failed %q, want none", got)
		}
	})
}
