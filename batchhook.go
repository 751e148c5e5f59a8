package sqsonce

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
)

// batchHook is BatchOptions.Around: it changes no result. When it fails, that is logged and it is not called again. The hosts' guard
// of hooks is no use here: it is made of this package.
type batchHook struct {
	call func(context.Context, []context.Context, []*Message) (context.Context, func([]error))
	off  atomic.Bool
}

// begin returns the context for the batch handler, and what is to be called with its results.
func (h *batchHook) begin(ctx context.Context, entries []*batchEntry, ms []*Message) (_ context.Context, end func([]error)) {
	end = func([]error) {}
	if h == nil || h.off.Load() {
		return ctx, end
	}
	calls := make([]context.Context, len(entries))
	for i, e := range entries {
		calls[i] = e.ctx
	}
	next := ctx
	var done func([]error)
	h.contain(ctx, func() { next, done = h.call(ctx, calls, slices.Clone(ms)) })
	if done == nil {
		return next, end
	}
	return next, func(errs []error) { h.contain(ctx, func() { done(slices.Clone(errs)) }) }
}

// contain calls f, which calls the hook.
func (h *batchHook) contain(ctx context.Context, f func()) {
	defer func() {
		if v := recover(); v != nil && !h.off.Swap(true) {
			slog.ErrorContext(ctx, "sqsonce: hook failed: it is not called again", "hook", "BatchOptions.Around", "error", v, "stack", string(debug.Stack()))
		}
	}()
	f()
}
