package dedup

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sqsonce/sqsonce"
)

// outcome is what a handler left behind.
type outcome struct {
	result    Result
	completed bool
	err       error
}

// call runs the handler. It may not return: after runtime.Goexit nothing but deferred functions runs.
func (out *outcome) call(ctx context.Context, t task, l Lease) {
	returned := false
	defer func() {
		if returned {
			return
		}
		// recover returns nil after Goexit only: panic(nil) is a *runtime.PanicNilError.
		*out = outcome{err: &sqsonce.PanicError{Value: recover(), Stack: debug.Stack()}}
	}()
	out.result, out.completed, out.err = t.run(ctx, l)
	returned = true
}

// run starts the handler under the lease, and records its outcome: in a deferred function, since runtime.Goexit in a
// handler must leave no record behind as held. To give the handler a goroutine of its own would cost each delivery two
// wake-ups; hosts take Goexit for a failure by themselves.
func (o *Once) run(ctx context.Context, t task, h *hold, l Lease) (err error) {
	if err := o.start(ctx, t, h, l); err != nil {
		return err
	}
	h.Context = ctx
	handlerCtx, cancel := context.Context(h), sqsonce.HandlerCancel(ctx)
	if cancel == nil || !t.whole || nested(ctx) {
		handlerCtx, cancel = context.WithCancelCause(h)
		defer cancel(nil)
	}
	h.watch(cancel)
	h.startRenewing(ctx)

	var out outcome
	defer func() {
		h.endRenewals(true)
		h.unwatch()
		err = o.finish(ctx, h, out)
	}()
	out.call(handlerCtx, t, h.current())
	return nil // finish knows
}

// start decides whether the handler may run under the lease just granted.
func (o *Once) start(ctx context.Context, t task, h *hold, l Lease) error {
	if ctx.Err() != nil {
		err := fmt.Errorf("dedup: not started: %w", context.Cause(ctx))
		o.release(ctx, l, err)
		return err
	}
	err := h.ready(ctx, l)
	switch {
	case errors.Is(err, sqsonce.ErrLeaseLost):
		o.counts.leasesLost.Add(1)
		return sqsonce.ErrLeaseLost
	case err != nil:
		o.counts.storeErrors.Add(1)
		err = fmt.Errorf("dedup: renew %s before the start: %w", t.key, err)
		o.release(ctx, l, err)
		return err
	case l.Takeover:
		o.counts.takeovers.Add(1)
	default:
		o.counts.first.Add(1)
	}
	return nil
}

// finish records what the handler left behind.
func (o *Once) finish(ctx context.Context, h *hold, out outcome) error {
	l := h.current()
	if errors.Is(out.err, ErrForeignWriter) && !h.isLost() {
		o.counts.foreign.Add(1) // an inbox's commit
	}
	switch {
	case out.completed:
		o.memory.complete(h.task.key, l.Validation)
		return out.err
	case out.err == nil:
		return o.completeRecord(ctx, h, out.result)
	case h.isLost():
		// The handler's verdict is another owner's to give by now: not even a Reject may move the message.
		return fmt.Errorf("%w: handler returned: %v", sqsonce.ErrLeaseLost, out.err)
	}
	o.release(ctx, l, out.err)
	return out.err
}

// release frees the record after a failure. A rejected message's record is released when its host has settled it: a
// second delivery must not start while the message is only on its way to the dead-letter queue.
func (o *Once) release(ctx context.Context, l Lease, cause error) {
	free := func(bool) {
		ctx, cancel := o.own(ctx)
		defer cancel()
		o.free(ctx, l, cause)
	}
	if _, reject := sqsonce.Verdict(cause); reject != nil && sqsonce.OnSettled(ctx, free) {
		return
	}
	free(false)
}

func (o *Once) free(ctx context.Context, l Lease, cause error) {
	if err := o.store.Release(ctx, l, cause); err != nil {
		// Nothing is lost: the next delivery waits until the lease is over.
		o.counts.storeErrors.Add(1)
		o.o.Logger.WarnContext(ctx, "dedup: release failed", "key", l.Key, "until", l.Until.Format(time.RFC3339), "error", err)
	}
}
