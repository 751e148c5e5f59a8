package sqsworker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// TestSuspendEndsTheLease: the machine sleeps for an hour. Timers have stood still, so nothing was extended; the wall
// clock shows it at the next look.
func TestSuspendEndsTheLease(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		var asleep atomic.Int64
		told := make(chan time.Time, 1)
		w, err := New(x.c, x.url, func(ctx context.Context, m *sqsonce.Message) error {
			if m.ReceiveCount > 1 {
				return nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), sqsonce.ErrLeaseLost) {
				t.Errorf("cause: got %v, want ErrLeaseLost", context.Cause(ctx))
			}
			told <- time.Now()
			return nil
		}, func(o *Options) { o.Wait = time.Second })
		if err != nil {
			t.Fatal(err)
		}
		w.now = func() time.Time { return time.Now().Round(0).Add(time.Duration(asleep.Load())) }
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- w.Run(ctx) }()
		time.Sleep(5 * time.Second)
		asleep.Store(int64(time.Hour))
		woke := time.Now()
		if took := (<-told).Sub(woke); took > 3*time.Second {
			t.Errorf("told %s after the wake, want at the next look", took)
		}
		cancel()
		if err := <-result; err != nil {
			t.Errorf("Run: %v", err)
		}
		if n := x.calls(opDelete); n != 0 {
			t.Errorf("%d deletes with a lost lease", n)
		}
	})
}
