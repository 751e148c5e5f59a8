package sqsworker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// A worker receives no more than it was granted, and asks again when it was told. It asks for one message while its queue is empty.
func TestIntake(t *testing.T) {
	run(t, "rate", setup{}, func(x *fixture) {
		var mu sync.Mutex
		var next time.Time
		var asked []int
		grant := func(_ context.Context, n int) (int, time.Duration) { // ten messages each half second
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, n)
			if now := time.Now(); !now.Before(next) {
				next = now.Add(500 * time.Millisecond)
				return n, 0
			}
			return 0, time.Until(next)
		}
		var r runs
		j := x.start(r.take(0), func(o *Options) { o.Intake = grant })
		time.Sleep(time.Minute)
		mu.Lock()
		for _, n := range asked[1:] {
			if n != 1 {
				x.Errorf("asked for %d messages while the queue was empty, want 1", n)
			}
		}
		if len(asked) > 10 {
			x.Errorf("asked %d times in a minute without messages", len(asked))
		}
		mu.Unlock()
		const n = 200
		x.sendMany(n)
		took := untilDone(x.T, n, j)
		if s := j.Stats(); took < 9*time.Second || took > 12*time.Second || s.Received != n || s.Released > 0 {
			x.Errorf("200 messages in %s, want about 10 s; %+v", took, s)
		}
		j.stopClean()
	})
}

// A receive that brings less leaves the rest to the receives of the next second.
func TestIntakeKeepsTheRest(t *testing.T) {
	run(t, "rest", setup{}, func(x *fixture) {
		var granted int
		x.send("a", "b", "c")
		var r runs
		j := x.start(r.take(0), func(o *Options) {
			o.MaxReceivers = 1
			o.Intake = func(_ context.Context, n int) (int, time.Duration) {
				granted += n
				return n, 0
			}
		})
		untilDone(x.T, 3, j)
		for range 7 {
			x.send("m")
			time.Sleep(100 * time.Millisecond)
		}
		untilDone(x.T, 10, j)
		if granted > 20 { // the last receive asks again
			x.Errorf("%d granted for 10 messages, want 20 at most", granted)
		}
		j.stopClean()
	})
}

// While Intake panics, does not answer or grants nothing, nothing is received, and the worker stops in its time.
func TestIntakeFails(t *testing.T) {
	for name, f := range map[string]func(context.Context, int) (int, time.Duration){
		"panics":        func(context.Context, int) (int, time.Duration) { panic(errors.New("boom")) },
		"waits":         func(ctx context.Context, _ int) (int, time.Duration) { <-ctx.Done(); return 0, 0 },
		"nothing":       func(context.Context, int) (int, time.Duration) { return -1, -1 },
		"later":         func(context.Context, int) (int, time.Duration) { return 0, 1000 * time.Hour },
		"more than all": func(_ context.Context, n int) (int, time.Duration) { return 1000 * n, 0 },
	} {
		run(t, name, setup{}, func(x *fixture) {
			var calls int
			var mu sync.Mutex
			x.sendMany(30)
			var r runs
			j := x.start(r.take(time.Minute), func(o *Options) {
				o.StopTimeout = 2 * time.Minute
				o.Intake = func(ctx context.Context, n int) (int, time.Duration) {
					mu.Lock()
					calls++
					mu.Unlock()
					return f(ctx, n)
				}
			})
			time.Sleep(30 * time.Second)
			j.stopClean()
			mu.Lock()
			defer mu.Unlock()
			want := int64(0)
			if name == "more than all" {
				want = 10
			}
			if s := j.Stats(); s.Received != want || calls > 3100 {
				x.Errorf("%d received, want %d; %d calls", s.Received, want, calls)
			}
		})
	}
}
