package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// run starts the handler under the lease, and records what it returned: also after runtime.Goexit, which must leave no
// record behind as held. The handler has no goroutine of its own, which would cost each delivery two wake-ups.
func (o *Once) run(ctx context.Context, t task, h *hold, l Lease) (err error) {
	if err := o.start(ctx, t, h, l); err != nil {
		return err
	}
	handlerCtx, cancel := context.WithCancelCause(context.WithValue(ctx, holdContextKey{}, h))
	defer cancel(nil)
	h.watch(cancel)
	h.startRenewing(ctx)

	var r Result
	completed := false
	host.Run(func() (err error) {
		r, completed, err = t.run(handlerCtx, h.current())
		return err
	}, func(handlerErr error) {
		h.endRenewals(true)
		h.unwatch()
		err = o.finish(ctx, h, r, completed, handlerErr)
	})
	return err
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

// finish records what the handler returned.
func (o *Once) finish(ctx context.Context, h *hold, r Result, completed bool, handlerErr error) error {
	l := h.current()
	if errors.Is(handlerErr, ErrForeignWriter) && !h.isLost() {
		o.counts.foreign.Add(1) // an inbox's commit
	}
	switch {
	case completed:
		o.memory.complete(h.task.key, l.Validation)
		return handlerErr
	case handlerErr == nil:
		return o.completeRecord(ctx, h, r)
	case h.isLost():
		// The handler's verdict is another owner's to give by now: not even a Reject may move the message.
		return fmt.Errorf("%w: handler returned: %v", sqsonce.ErrLeaseLost, handlerErr)
	}
	o.release(ctx, l, handlerErr)
	return handlerErr
}

// release frees the record after a failure. A rejected message's record is released when its host has settled it: a
// second delivery must not start while the message is only on its way to the dead-letter queue.
func (o *Once) release(ctx context.Context, l Lease, cause error) {
	free := func(bool) {
		ctx, cancel := o.own(ctx)
		defer cancel()
		o.free(ctx, l, cause)
	}
	if _, reject := host.Asked(cause); reject != nil && sqsonce.OnSettled(ctx, free) {
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
