package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// No visit begins in the last ten seconds of a minute, nor in the last third of six seconds; the call ends with its context.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for total, last := range map[time.Duration]time.Duration{time.Minute: 50 * time.Second, 6 * time.Second: 4 * time.Second} {
		for name, call := range map[string]func(context.Context, *outbox.Relay) error{
			"Drain": func(ctx context.Context, r *outbox.Relay) error { return r.Drain(ctx, groupNames(400)...) },
			"Sweep": func(ctx context.Context, r *outbox.Relay) error { _, err := r.Sweep(ctx); return err },
		} {
			t.Run(fmt.Sprint(name, total), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(x *fixture) {
					x.commit(5, groupNames(400)...)
					r := x.relay(func(o *outbox.Options) { o.Groups, o.Settle = 2, -1 })
					start := time.Now()
					var latest time.Duration
					var mu sync.Mutex
					x.ops.failing(func(op string) error {
						mu.Lock()
						defer mu.Unlock()
						if op == "Read" {
							latest = time.Since(start)
						}
						return nil
					})
					ctx, cancel := context.WithTimeout(x.Context(), total)
					defer cancel()
					if err := call(ctx, r); err == nil {
						t.Error("no error, though not all is published")
					}
					if took := time.Since(start); took > total || took < last {
						t.Errorf("took %v, want at least %v and at most %v", took, last, total)
					}
					if latest > last || latest < last-3*time.Second {
						t.Errorf("the last visit began after %v, want about %v and not later", latest, last)
					}
				}, fault.Rule{Op: send, Do: fault.Delay, Delay: 200 * time.Millisecond})
			})
		}
	}
}

// Sweeps that never come to the end: each begins where the last one has ended, so that the groups in front do not starve the others.
func TestSweepsCoverAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.Groups, o.Settle = 4, -1 })
		names := groupNames(200)
		x.commit(1, names[100:]...)
		for range 12 {
			x.commit(1, names[:100]...) // those in front never end
			ctx, cancel := context.WithTimeout(x.Context(), 15*time.Second)
			_, _ = r.Sweep(ctx)
			cancel()
		}
		for _, g := range names[100:] {
			x.wantQueued(g, 1)
		}
	}, fault.Rule{Op: send, Do: fault.Delay, Delay: time.Second})
}

// A sweep leaves young groups to their doorbells, and counts them.
func TestSettle(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(2, "old")
		time.Sleep(time.Minute)
		x.commit(1, "young")
		time.Sleep(10 * time.Second)
		b, err := r.Sweep(x.Context())
		if want := (outbox.Backlog{Groups: 2, Oldest: 70 * time.Second}); err != nil || b != want || r.Backlog() != want {
			t.Errorf("Sweep: %+v, %v; Backlog %+v; want %+v", b, err, r.Backlog(), want)
		}
		if line := "groups=2 oldest_seconds=70 halted=0 skipped=0"; x.log.lines(line) != 1 {
			t.Errorf("no line %s:\n%s", line, x.log)
		}
		x.wantQueued("old", 2)
		if len(x.queued("young")) != 0 {
			t.Error("the young group was visited")
		}
		time.Sleep(20 * time.Second)
		if _, err := r.Sweep(x.Context()); err != nil {
			t.Error(err)
		}
		x.wantQueued("young", 1)
		if b, err := r.Sweep(x.Context()); err != nil || b != (outbox.Backlog{}) {
			t.Errorf("Sweep of an empty outbox: %+v, %v", b, err)
		}
	})
}
