package sqsworker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/question"
)

// Questions that pass, are slow and asked all the time hold up no receive.
func TestSlowQuestions(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		for n := range 60 {
			x.send(fmt.Sprint("own", n))
		}
		works := func(ctx context.Context) error { until(ctx, 4*time.Second); return nil }
		var runs atomic.Int32
		var d dependency
		d.set(nil)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.Body[0] == 'o' {
				return question.With(sqsonce.Unavailable(errRefused), question.Question{ID: runs.Add(1) % 3, Ask: works})
			}
			return d.handle(ctx, m)
		})
		time.Sleep(10 * time.Minute)
		for n := range 100 {
			x.send(fmt.Sprint(n))
			sent := time.Now()
			for d.handled() <= n && time.Since(sent) < time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(sent); took > 15*time.Second { // three questions that nobody asked for a minute, one after the other
				t.Errorf("message %d handled after %s", n, took)
			}
			time.Sleep(2 * time.Second)
		}
		j.stopClean()
	})
}

// A question has the patience of the call that failed: a store that is slow, and works, is not down.
func TestPatientQuestion(t *testing.T) {
	t.Parallel()
	for patience, down := range map[time.Duration]bool{0: true, 21 * time.Second: false} {
		runParallel(t, patience.String(), setup{maxReceives: 5}, func(x *fixture) {
			slow := func(ctx context.Context) error { until(ctx, 12*time.Second); return ctx.Err() }
			j := x.start(func(context.Context, *sqsonce.Message) error {
				return question.With(sqsonce.Unavailable(errRefused), question.Question{ID: 1, Ask: slow, Patience: patience})
			})
			x.send("a")
			time.Sleep(20 * time.Second)
			if reason := j.whyNotReady(); (reason != "") != down {
				x.Errorf("not ready: %q, want that: %t", reason, down)
			}
			j.stopClean()
		})
	}
}
