package dedup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A lost lease cancels the context of its own handler and no other: not the host's, and not that of another event of the
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
			return inboxkit.Guard(o, ctx, message("1"), func(ctx context.Context, _ dedup.Lease) (bool, error) { return false, waits(ctx) })
		}},
	} {
		must.Run(t, c.name, func(t *testing.T) {
			f := newFaults()
			f.fail("renew", sqsonce.ErrLeaseLost)
			ctx, done := settle.New(t.Context())
			defer done(false)
			// The store accepts the complete: nobody has taken over.
			if err := c.run(ctx, newOnce(t, f), newOnce(t, newFaults())); err != nil {
				t.Error(err)
			}
			if ctx.Err() != nil {
				t.Error("the host's context is cancelled")
			}
		})
	}
}
