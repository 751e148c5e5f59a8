package dedup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

func TestLongHandlerKeepsItsLease(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		go func() {
			for range 9 {
				time.Sleep(time.Minute)
				if _, err := other(t, f.Store, recordKey("1")); !inProgress(err) {
					t.Errorf("another process in the middle of the handler: got error %v, want in progress", err)
				}
			}
		}()
		must.Do(t, newOnce(t, f).Handler(hang(10*time.Minute))(t.Context(), message("1")))
		// At a third of 30 s: 59 in 10 minutes, the 60th meets the handler's return.
		if n := f.seen("renew"); n < 59 || n > 60 {
			t.Errorf("%d renewals, want one each 10 s", n)
		}
	})
}

// A handler that does not notice its cancellation still runs: no other delivery may start.
func TestRenewedUntilTheHandlerHasReturned(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(sqsonce.ErrShutdown)
			time.Sleep(3 * time.Minute)
			if _, err := other(t, f.Store, recordKey("1")); !inProgress(err) {
				t.Errorf("long after the cancellation: got error %v, want in progress", err)
			}
		}()
		if err := newOnce(t, f).Handler(hang(5*time.Minute))(ctx, message("1")); err != nil {
			t.Errorf("got error %v, want nil: the handler succeeded and the owner decides", err)
		}
	})
}

func TestRefusedRenewalCancelsTheHandler(t *testing.T) {
	t.Parallel()
	for _, outcome := range []error{nil, errors.New("gave up"), sqsonce.Reject(errors.New("gave up"))} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.before = failing("renew", sqsonce.ErrLeaseLost, 2)
			o := newOnce(t, f)
			start := time.Now()
			err := o.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				<-ctx.Done()
				if cause, took := context.Cause(ctx), time.Since(start); cause != sqsonce.ErrLeaseLost || took != 20*time.Second {
					t.Errorf("cancelled after %s with %v, want ErrLeaseLost at the second renewal, 20 s", took, cause)
				}
				time.Sleep(5 * time.Minute)
				return outcome
			})(t.Context(), message("1"))
			if n := f.seen("renew"); n != 2 {
				t.Errorf("%d renewals, want none after the refused one", n)
			}
			if outcome == nil {
				return // in TestCompleteRefused: the store decides
			}
			if o := sqsonce.OutcomeOf(err); !errors.Is(err, sqsonce.ErrLeaseLost) || o.Retry || o.Reject {
				t.Errorf("got error %v, want ErrLeaseLost and neither a RetryAfter nor a Reject: another owner decides", err)
			}
			if f.seen("release") != 0 {
				t.Error("released a record that has another owner")
			}
			if s := o.Stats(); s.LeasesLost != 1 {
				t.Errorf("LeasesLost: got %d, want 1", s.LeasesLost)
			}
		})
	}
}

// The store does not answer for longer than the lease: the handler is cancelled, although no owner took over.
func TestUnprovenLeaseCancelsTheHandler(t *testing.T) {
	t.Parallel()
	for _, failure := range []string{"error", "hangs"} {
		must.Run(t, failure, func(t *testing.T) {
			f := newFaults()
			start := time.Now()
			f.before = func(ctx context.Context, op string, _ int) error {
				if op != "renew" || time.Since(start) > 2*time.Minute {
					return nil
				}
				if failure == "hangs" {
					<-ctx.Done()
					return ctx.Err()
				}
				return errStore
			}
			o := newOnce(t, f)
			err := o.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				<-ctx.Done()
				if took := time.Since(start); took != 30*time.Second {
					t.Errorf("cancelled after %s, want at the lease's end, 30 s", took)
				}
				if cause := context.Cause(ctx); cause != sqsonce.ErrLeaseLost {
					t.Errorf("cause: got %v, want ErrLeaseLost", cause)
				}
				time.Sleep(3*time.Minute - time.Since(start)) // does not notice its cancellation
				if _, err := other(t, f.Store, recordKey("1")); !inProgress(err) {
					t.Errorf("after the store is back: got error %v, want in progress: nobody took over", err)
				}
				return context.Cause(ctx)
			})(t.Context(), message("1"))
			if !errors.Is(err, sqsonce.ErrLeaseLost) {
				t.Errorf("got error %v, want ErrLeaseLost", err)
			}
			if n := f.seen("renew"); n < 8 {
				t.Errorf("%d renewals tried, want several in a lease", n)
			}
			if s := o.Stats(); s.LeasesLost != 1 {
				t.Errorf("LeasesLost: got %d, want 1", s.LeasesLost)
			}
		})
	}
}

// The process ends at a known instant: the lease outlasts it and is not renewed.
func TestKillAt(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		m := message("1")
		m.KillAt = time.Now().Add(15 * time.Minute)
		err := newOnce(t, f).Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			l, ok := inboxkit.LeaseFrom(ctx)
			if want := m.KillAt.Add(2 * time.Second); !ok || !l.Until.Equal(want) {
				t.Errorf("lease until %s, want KillAt + 2 s, %s", l.Until, want)
			}
			time.Sleep(14 * time.Minute)
			return nil
		})(t.Context(), m)
		if err != nil || f.log() != "[acquire complete]" {
			t.Errorf("got error %v after calls %s, want nil after [acquire complete]", err, f.log())
		}
	})
}

// A lease that ends with the process is not renewed. If the process goes on, the lease's end cancels the handler.
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

// A lost lease cancels the context of its own handler only: not the host's, and not that of another event of the
// same message.
func TestLostLeaseCancelsItsOwnContextOnly(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		if cause := context.Cause(ctx); cause != sqsonce.ErrLeaseLost {
			return errors.New("not cancelled with ErrLeaseLost")
		}
		if _, ok := inboxkit.LeaseFrom(ctx); !ok {
			return errors.New("no lease in the context")
		}
		return nil
	}
	handler := func(ctx context.Context, _ *sqsonce.Message) error { return waits(ctx) }
	for _, c := range []struct {
		name string
		run  func(ctx context.Context, o *dedup.Once, outer *dedup.Once) error
	}{
		{"handler", func(ctx context.Context, o, _ *dedup.Once) error {
			return o.Handler(handler)(ctx, message("1"))
		}},
		{"handler in another's", func(ctx context.Context, o, outer *dedup.Once) error {
			return outer.Handler(o.Handler(handler))(ctx, message("1"))
		}},
		{"Do", func(ctx context.Context, o, _ *dedup.Once) error {
			_, err := dedup.Do(ctx, o, "key", func(ctx context.Context) (int, error) { return 0, waits(ctx) })
			return err
		}},
		{"inbox", func(ctx context.Context, o, _ *dedup.Once) error {
			return guard(o, ctx, message("1"), func(ctx context.Context, _ dedup.Lease) (bool, error) { return false, waits(ctx) })
		}},
	} {
		must.Run(t, c.name, func(t *testing.T) {
			f := newFaults()
			f.fail("renew", sqsonce.ErrLeaseLost)
			ctx, done := settle.New(t.Context())
			defer done(false)
			// The store accepts the complete: the event was not taken over.
			if err := c.run(ctx, newOnce(t, f), newOnce(t, newFaults())); err != nil {
				t.Error(err)
			}
			if ctx.Err() != nil {
				t.Error("the host's context is cancelled")
			}
		})
	}
}
