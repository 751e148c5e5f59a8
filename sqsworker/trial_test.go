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
