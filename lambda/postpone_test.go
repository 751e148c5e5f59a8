package lambda

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// limited is a handler behind a limit that keeps bodies with a name back for d, unless they run in debt.
func limited(name string, d time.Duration) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		if !strings.Contains(m.Body, name) || settle.InDebt(ctx) {
			return nil
		}
		if held, holds := settle.Room(ctx, name); held || holds {
			panic("a function holds nothing")
		}
		return sqsonce.Postpone(d, errRefused)
	}
}

// A postponed message is visible when it asks for it, with those behind it in its group, and all other messages run.
func TestPostponed(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		runWithQueue(t, map[bool]string{true: "fifo", false: "standard"}[fifo], fifo, nil, func(x *fixture) {
			x.redrive(5)
			x.send("a-later", "a2", "b1")
			want := map[bool]string{true: "a-later a2", false: "a-later"}[fifo]
			if got := x.failed(x.wrap(limited("later", 20*time.Minute)), 30*time.Second, x.receive()); got != want {
				x.Errorf("reported %q, want %q", got, want)
			}
			for body, in := range x.visibleIn() {
				if strings.Contains(want, body) && in != 20*time.Minute {
					x.Errorf("%s is visible in %s", body, in)
				}
			}
			if x.dead() != "" || strings.Contains(x.log.String(), "WARN") {
				x.Errorf("dead: %q; log:\n%s", x.dead(), &x.log)
			}
		})
	}
}

// At the last receive, of a message or of one behind it in its group, and when its retention ends, a message runs in
// debt. Without a client nobody knows.
func TestPostponedInDebt(t *testing.T) {
	for name, tt := range map[string]struct {
		fifo             bool
		receives         int
		most             int
		retention, waits time.Duration
		noClient         bool
		want             string // reported
	}{
		"last receive":      {receives: 5, most: 5},
		"last of a group":   {fifo: true, receives: 5, most: 5},
		"one before":        {receives: 4, most: 5, want: "a-later"},
		"no redrive policy": {receives: 9, want: "a-later"},
		"no client":         {receives: 5, most: 5, noClient: true, want: "a-later"},
		"retention":         {receives: 1, most: 5, retention: time.Hour, waits: 55 * time.Minute},
	} {
		runWithQueue(t, name, tt.fifo, nil, func(x *fixture) {
			if tt.most > 0 {
				x.redrive(tt.most)
			}
			if tt.retention > 0 {
				x.set(x.url, "MessageRetentionPeriod", "3600")
			}
			x.send("a-later", "a2")
			time.Sleep(tt.waits)
			e := x.receive()
			for range tt.receives - 1 {
				time.Sleep(visibility + time.Second)
				e = x.receive()
			}
			f := x.wrap(limited("later", time.Minute), func(o *Options) {
				if tt.noClient {
					o.Client, o.DeadLetterQueue, o.Backoff = nil, "", nil
				}
			})
			if got := x.failed(f, 30*time.Second, e); got != tt.want {
				x.Errorf("reported %q, want %q\n%s", got, tt.want, &x.log)
			}
		})
	}
}

// Without a limiter a handler's own Postpone at the last receive runs again in the invocation where its time fits. Else
// SQS moves it.
func TestPostponedByAHandlerAtLastReceive(t *testing.T) {
	for name, tt := range map[string]struct {
		wait time.Duration
		runs int
		want string
	}{"fits": {10 * time.Second, 2, ""}, "does not": {time.Minute, 1, "1"}} {
		runWithQueue(t, name, false, nil, func(x *fixture) {
			x.redrive(1)
			x.send("1")
			start, runs := time.Now(), 0
			f := x.wrap(func(context.Context, *sqsonce.Message) error {
				if runs++; time.Since(start) < tt.wait {
					return sqsonce.Postpone(tt.wait, nil)
				}
				return nil
			})
			if got := x.failed(f, 30*time.Second, x.receive()); got != tt.want || runs != tt.runs {
				x.Errorf("reported %q after %d runs, want %q after %d", got, runs, tt.want, tt.runs)
			}
		})
	}
}
