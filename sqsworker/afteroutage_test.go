package sqsworker

import (
	"context"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/question"
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

// When the question passes, all that is held runs, also what was aside long before. Nothing is received until one of them has an outcome.
func TestEndOfAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		own, all := dependency{}, dependency{}
		own.set(errRefused)
		all.set(nil)
		began := make(chan string, 20)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.Body == "own" && *own.err.Load() != nil {
				return question.With(sqsonce.Unavailable(errRefused), question.Question{ID: 1, Ask: all.ask})
			}
			if err := all.ask(ctx); err != nil {
				return question.With(sqsonce.Unavailable(err), question.Question{ID: 2, Ask: all.ask})
			}
			began <- m.Body
			until(ctx, 5*time.Second)
			return nil
		}, func(o *Options) { o.WaitTime = time.Second })
		x.send("own")
		time.Sleep(20 * time.Minute)
		all.set(errRefused)
		x.send("all")
		time.Sleep(10 * time.Second)
		x.sendMany(10)
		own.set(nil)
		all.set(nil)
		<-began
		time.Sleep(3 * time.Second)
		if s := j.Stats(); s.Received != 2 || s.Running != 2 {
			t.Errorf("%d received, %d running; want the two that were held", s.Received, s.Running)
		}
		time.Sleep(time.Minute)
		j.stopClean()
		x.wantEmpty()
	})
}
