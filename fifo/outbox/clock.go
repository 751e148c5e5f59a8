package outbox

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
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

// outlive returns a context that ends d after ctx has, or when end is called. No timer and no goroutine is left then.
func outlive(ctx context.Context, d time.Duration) (_ context.Context, end func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		if host.Wait(longer, d) {
			cancel(context.Cause(ctx))
		}
	})
	return longer, func() {
		cancel(nil)
		if !stop() {
			<-ended
		}
	}
}
