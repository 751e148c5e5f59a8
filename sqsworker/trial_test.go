package sqsworker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

func refused(context.Context) error { return errRefused }

// A question that fails wrongly is found out also where all that is here was unavailable, and nothing more may be received.
func TestTrialWithoutReceive(t *testing.T) {
	t.Parallel()
	for name, paused := range map[string]bool{"full": false, "paused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, setup{maxReceives: 2}, func(x *fixture) {
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
					t.Errorf("%d of %d done, not ready: %q", done.Load(), messages, j.NotReady())
				}
				j.stopClean()
			})
		})
	}
}
