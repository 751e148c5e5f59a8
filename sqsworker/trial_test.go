package sqsworker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

func refused(context.Context) error { return errRefused }

// A question that fails wrongly is found out also where all that is here was unavailable, and nothing more may be received.
func TestTrialWithoutReceive(t *testing.T) {
	t.Parallel()
	for name, paused := range map[string]bool{"full": false, "paused": true} {
		runParallel(t, name, setup{maxReceives: 2}, func(x *fixture) {
			const messages = 3
			x.sendMany(messages)
			var down atomic.Bool
			down.Store(true)
			var done atomic.Int32
			j := x.start(func(context.Context, *sqsonce.Message) error {
				if down.Load() {
					return sqsonce.UnavailableUntil(errRefused, refused)
				}
				done.Add(1)
				return nil
			}, func(o *Options) {
				if !paused {
					o.Concurrency, o.MaxInFlight = messages, messages
				}
			})
			time.Sleep(10 * time.Second)
			if paused {
				j.Pause()
			}
			down.Store(false)
			time.Sleep(time.Minute)
			if done.Load() != messages {
				x.Errorf("%d of %d done, not ready: %q", done.Load(), messages, j.whyNotReady())
			}
			j.stopClean()
		})
	}
}

// A message that middleware keeps for longer than 8 s before its handler, as dedup does in an acquire with a long CallTimeout, proves
// nothing: not at the start, and not as a trial. It proves that its store works once its handler runs.
func TestLongAcquire(t *testing.T) {
	t.Parallel()
	const acquire = 11 * time.Second
	for name, c := range map[string]struct {
		first         error // of the first message, at once
		called        bool  // the handler, after the acquire
		after         time.Duration
		received, end int64
	}{
		"silent from the start": {nil, false, 25 * time.Second, 1, 2},
		"silent in the trial":   {sqsonce.UnavailableUntil(errRefused, refused), false, 50 * time.Second, 2, 2},
		"slow":                  {nil, true, acquire, 1, 5},
	} {
		runParallel(t, name, setup{maxReceives: 5}, func(x *fixture) {
			x.slowStart = true
			x.sendMany(5)
			var first atomic.Bool
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if first.CompareAndSwap(false, true) && c.first != nil {
					return c.first
				}
				settle.Before(ctx)
				until(ctx, acquire)
				if !c.called {
					return sqsonce.UnavailableUntil(errTest, func(ctx context.Context) error { until(ctx, acquire); return errTest })
				}
				settle.Ran(ctx, true)
				until(ctx, time.Hour)
				return nil
			})
			time.Sleep(c.after)
			if n := j.Stats().Received; n != c.received || x.log.has("a message was handled while") {
				x.Errorf("%d received after %s, want %d", n, c.after, c.received)
			}
			time.Sleep(time.Minute - c.after)
			if n := j.Stats().Received; n != c.end {
				x.Errorf("%d received after a minute, want %d", n, c.end)
			}
			_ = j.stop()
		})
	}
}

// withoutRun are handlers whose outcome says nothing about what a handler needs: of a duplicate, a message that dedup skips, one that
// middleware around dedup rejects, and one that the handler can't decode.
var withoutRun = []sqsonce.Handler{
	func(ctx context.Context, _ *sqsonce.Message) error { settle.Ran(ctx, false); return nil },
	func(ctx context.Context, _ *sqsonce.Message) error { settle.Ran(ctx, false); return sqsonce.Skip("") },
	func(context.Context, *sqsonce.Message) error { return sqsonce.Reject(errTest) },
	func(ctx context.Context, m *sqsonce.Message) error {
		settle.Ran(ctx, true)
		return sqsonce.JSON(func(context.Context, int) error { return nil })(ctx, m)
	},
}

// A trial that tells nothing, since it loses its lease, is a suspect or has an outcome without a run, is followed by another one soon.
// An outcome without a run ends no outage.
func TestTrialThatTellsNothing(t *testing.T) {
	t.Parallel()
	for name, tells := range map[string]sqsonce.Handler{
		"lost": func(context.Context, *sqsonce.Message) error { return sqsonce.ErrLeaseLost },
		"suspect": func(context.Context, *sqsonce.Message) error {
			return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now())
		},
		"duplicate": withoutRun[0], "rejected outside of dedup": withoutRun[2], "not decoded": withoutRun[3],
	} {
		runParallel(t, name, setup{maxReceives: 5}, func(x *fixture) {
			var others, tried atomic.Int32
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				switch m.Body {
				case "own":
					settle.Ran(ctx, true) // as dedup does
					return sqsonce.UnavailableUntil(errRefused, refused)
				case "first":
					if tried.Add(1) == 1 {
						return tells(ctx, m)
					}
				default:
					others.Add(1)
				}
				return nil
			})
			x.send("own")
			time.Sleep(2 * time.Second)
			x.send("first")
			time.Sleep(33 * time.Second)
			if tried.Load() != 1 || j.whyNotReady() == "" {
				x.Errorf("tried %d times, not ready: %q; want once, and an outage", tried.Load(), j.whyNotReady())
			}
			x.send("other")
			time.Sleep(time.Minute)
			if others.Load() != 1 || j.whyNotReady() != "" {
				x.Errorf("%d of 1 others done, not ready: %q", others.Load(), j.whyNotReady())
			}
			j.stopClean()
		})
	}
}
