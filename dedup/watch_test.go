package dedup_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
)

// The acquire was answered late, and less is left of the lease than the time until the first renewal.
func TestLeaseThatIsNearlyOverAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.after = func(_ context.Context, op string, _ int) error {
			if op == "acquire" {
				time.Sleep(25 * time.Second) // of 30
			}
			return nil
		}
		f.fail("renew", errStore)
		start := time.Now()
		_ = newOnce(t, f).Handler(untilLost(t))(t.Context(), message("1"))
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("cancelled after %s, want at the lease's end, 30 s", took)
		}
	})
}

// A lease that ends with the process is not renewed. Where the process goes on, its end cancels the handler.
func TestLeaseWithoutRenewalsCancelsTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := message("1")
		m.KillAt = time.Now().Add(10 * time.Second)
		start := time.Now()
		_ = newOnce(t, newFaults()).Handler(untilLost(t))(t.Context(), m)
		if took := time.Since(start); took != 12*time.Second {
			t.Errorf("cancelled after %s, want two seconds after KillAt, 12 s", took)
		}
	})
}

func untilLost(t *testing.T) sqsonce.Handler {
	return func(ctx context.Context, _ *sqsonce.Message) error {
		select {
		case <-ctx.Done():
		case <-time.After(time.Hour):
		}
		if cause := context.Cause(ctx); cause != sqsonce.ErrLeaseLost {
			t.Errorf("cause: got %v, want ErrLeaseLost", cause)
		}
		return nil
	}
}
