package outbox

import (
	"context"
	"time"
)

// instant is a reading of both clocks. The monotonic clock stops in a frozen Lambda environment and in a suspended computer; a
// correction moves the wall clock.
type instant struct {
	mono time.Duration
	wall time.Time
}

var processStart = time.Now()

func readClocks() instant {
	now := time.Now()
	return instant{mono: now.Sub(processStart), wall: now.Round(0)}
}

// since returns the time since start, by the clock that says more.
func (i instant) since(start instant) time.Duration {
	return max(i.mono-start.mono, i.wall.Sub(start.wall))
}

// outlive returns a context that ends d after ctx has, or when end is called. No timer is left then.
func outlive(ctx context.Context, d time.Duration) (_ context.Context, end func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			cancel(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel(nil)
	}
}
