package sqsonce

import (
	"context"
	"slices"

	"github.com/sqsonce/sqsonce/internal/guard"
)

// batchHook is BatchOptions.Around. It doesn't change results.
type batchHook struct {
	call  func(context.Context, []context.Context, []*Message) (context.Context, func([]error))
	guard *guard.Guard
}

// begin returns the context for the batch handler, and the function to call with its results.
func (h *batchHook) begin(ctx context.Context, calls []context.Context, ms []*Message) (_ context.Context, end func([]error)) {
	if h == nil {
		return ctx, func([]error) {}
	}
	var done func([]error)
	next := h.guard.Context(ctx, func(ctx context.Context) (next context.Context) {
		next, done = h.call(ctx, slices.Clone(calls), slices.Clone(ms))
		return next
	})
	return next, func(errs []error) {
		if done != nil {
			h.guard.Call(ctx, func() { done(slices.Clone(errs)) })
		}
	}
}
