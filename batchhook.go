package sqsonce

import (
	"context"
	"errors"
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
	given, next := context.WithValue(ctx, batchKey{}, ctx), ctx
	var done func([]error)
	h.contain(ctx, func() {
		var c context.Context
		c, done = h.call(given, calls, slices.Clone(ms))
		if c == nil || c.Value(batchKey{}) != any(ctx) || c.Done() == nil {
			panic(errBatchContext)
		}
		end, ends := c.Deadline()
		if last, limited := ctx.Deadline(); ends && (!limited || end.Before(last)) || c.Err() != nil && ctx.Err() == nil {
			panic(errBatchContextEnds)
		}
		next = c
	})
	if done == nil {
		return next, end
	}
	return next, func(errs []error) { h.contain(ctx, func() { done(slices.Clone(errs)) }) }
}

type batchKey struct{}

var (
	errBatchContext     = errors.New("the returned context is not derived from the given one, or does not end with it")
	errBatchContextEnds = errors.New("the returned context has ended, or has an earlier deadline than the given one")
)

// contain calls f, which calls the hook.
func (h *batchHook) contain(ctx context.Context, f func()) {
	defer func() {
		if v := recover(); v != nil && !h.off.Swap(true) {
			slog.ErrorContext(ctx, "sqsonce: hook failed: it is not called again", "hook", "BatchOptions.Around", "error", v, "stack", string(debug.Stack()))
		}
	}()
	f()
}
