package dedup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// TestLostLeaseEndsTheHostsContext: what speaks for the whole message ends the host's context and needs none of its own.
// What does not, ends only its own.
func TestLostLeaseEndsTheHostsContext(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		if cause := context.Cause(ctx); cause != sqsonce.ErrLeaseLost {
			return errors.New("not cancelled with ErrLeaseLost")
		}
		if _, ok := dedup.LeaseFrom(ctx); !ok {
			return errors.New("no lease in the context")
		}
		return nil
	}
	handler := func(ctx context.Context, _ *sqsonce.Message) error { return waits(ctx) }
	for _, c := range []struct {
		name string
		run  func(ctx context.Context, o *dedup.Once, outer *dedup.Once) error
		host bool // its context ends
	}{
		{"handler", func(ctx context.Context, o, _ *dedup.Once) error {
			return o.Handler(handler)(ctx, message("1"))
		}, true},
		{"handler in another's", func(ctx context.Context, o, outer *dedup.Once) error {
			return outer.Handler(o.Handler(handler))(ctx, message("1"))
		}, false},
		{"call", func(ctx context.Context, o, _ *dedup.Once) error {
			_, err := dedup.Do(ctx, o, "key", func(ctx context.Context) (int, error) { return 0, waits(ctx) })
			return err
		}, false},
		{"guard", func(ctx context.Context, o, _ *dedup.Once) error {
			return o.Guard(ctx, message("1"), func(ctx context.Context, _ dedup.Lease) (bool, error) { return false, waits(ctx) })
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				f.fail("renew", sqsonce.ErrLeaseLost)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				ctx, settle := sqsonce.WithSettlement(ctx, cancel)
				defer settle(false)
				// The store accepts the complete in the end: nobody has taken over.
				if err := c.run(ctx, newOnce(t, f), newOnce(t, newFaults())); err != nil {
					t.Error(err)
				}
				if got := ctx.Err() != nil; got != c.host {
					t.Errorf("the host's context has ended: got %t, want %t", got, c.host)
				}
			})
		})
	}
}
