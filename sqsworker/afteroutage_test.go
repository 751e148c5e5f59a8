package sqsworker

import (
	"context"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// until waits for d, or less where the context ends.
func until(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// A handler that has run since before an outage says nothing of what is there after it: receives don't wait for it.
func TestLongHandlerInAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		d := dependency{asks: true}
		d.set(nil)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.Body == "long" {
				until(ctx, 5*time.Hour)
				return context.Cause(ctx)
			}
			return d.handle(ctx, m)
		})
		x.send("long")
		time.Sleep(time.Minute)
		d.set(errRefused)
		x.send("given back")
		time.Sleep(3 * time.Minute)
		d.set(nil)
		time.Sleep(2 * time.Minute)
		if reason := j.NotReady(); d.handled() != 1 || reason != "" {
			t.Errorf("%d of 1 handled, not ready: %q", d.handled(), reason)
		}
		j.stopClean()
	})
}
