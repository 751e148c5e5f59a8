package dedup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	firstBackoff = 50 * time.Millisecond
	mostBackoff  = 2 * time.Second
)

// run starts the handler under the lease and records what it returned. It does so after runtime.Goexit too: else the
// event would wait for the end of the lease. The handler runs on the caller's goroutine: one of its own would cost each
// delivery two wake-ups.
func (o *Once) run(ctx context.Context, t task, rl *recordLease, l Lease) (err error) {
	if err := o.start(ctx, t, rl, l); err != nil {
		return err
	}
	handlerCtx, cancel := context.WithCancelCause(context.WithValue(ctx, leaseContextKey{}, rl))
	defer cancel(nil)
	rl.watch(cancel)
	rl.startRenewing(ctx)

	var r Result
	completed := false
	host.Run(func() (err error) {
		r, completed, err = t.run(handlerCtx, rl.current())
		return err
	}, func(handlerErr error) {
		rl.stopRenewing(true)
		rl.unwatch()
		err = o.finish(ctx, rl, r, completed, handlerErr)
	})
	return err
}

// start decides whether the handler may run under the lease that was just granted.
func (o *Once) start(ctx context.Context, t task, rl *recordLease, l Lease) error {
	if ctx.Err() != nil {
		err := o.notStarted(ctx, t)
		o.release(ctx, l, err)
		return err
	}
	err := rl.ensureLive(ctx, l)
	switch {
	case errors.Is(err, sqsonce.ErrLeaseLost):
		o.counts.leasesLost.Add(1)
		return o.lostError(t.key, err)
	case err != nil:
		o.counts.storeErrors.Add(1)
		err = fmt.Errorf("dedup: lease over before the start and not renewed, handler not called %s: %w", o.record(t.key), err)
		o.release(ctx, l, err)
		return err
	case l.Takeover:
		o.counts.takeovers.Add(1)
		o.o.Logger.InfoContext(ctx, "dedup: event taken over from an owner that crashed", "key", l.Key, "fence", l.Fence, "receive_count", l.Attempts)
	default:
		o.counts.first.Add(1)
	}
	return nil
}

// notStarted is the error of a delivery whose context was cancelled before its handler could start.
func (o *Once) notStarted(ctx context.Context, t task) error {
	return fmt.Errorf("dedup: context cancelled, handler not called %s: %w", o.record(t.key), context.Cause(ctx))
}

// finish records what the handler returned.
func (o *Once) finish(ctx context.Context, rl *recordLease, r Result, completed bool, handlerErr error) error {
	l, lost := rl.current(), rl.lostError()
	if errors.Is(handlerErr, ErrForeignWriter) && lost == nil {
		o.counts.foreign.Add(1) // an inbox's commit was refused
	}
	switch {
	case completed:
		o.cache.add(rl.task.key, l.Validation)
		return handlerErr
	case handlerErr == nil:
		return o.complete(ctx, rl, r)
	case lost != nil:
		// The outcome is not this delivery's to decide: not even a Reject may move the message.
		return fmt.Errorf("%w: handler returned: %v", lost, handlerErr)
	}
	o.release(ctx, l, handlerErr)
	return handlerErr
}

// complete records the handler's success. It is tried at least once, also after the lease's end, since the store accepts
// it while nobody has taken over. It is retried until the lease is over: later another owner may run the handler anyway.
//
// The record is never released here, whatever the store answers: the event has had its effect. A release would let the
// next delivery repeat the effect at once. The lease gives an answer that is slow or lost the time to be confirmed.
func (o *Once) complete(ctx context.Context, rl *recordLease, r Result) error {
	l := rl.current()
	var err error
	for backoff := firstBackoff; ; backoff = min(2*backoff, mostBackoff) {
		if err = o.callComplete(ctx, l, r); err == nil {
			o.cache.add(rl.task.key, r.Validation)
			return nil
		}
		if errors.Is(err, sqsonce.ErrLeaseLost) {
			rl.lose(err)
			return rl.lostError()
		}
		o.counts.storeErrors.Add(1)
		pause := backoff/2 + rand.N(backoff/2)
		if _, unusable := errors.AsType[*sqsonce.FieldError](err); unusable || pause >= rl.left() {
			break
		}
		time.Sleep(pause) // also where ctx is cancelled: the effect has happened
	}

	o.counts.completeFailed.Add(1)
	if o.o.OnCompleteFailed == Acknowledge {
		o.o.Logger.ErrorContext(ctx, "dedup: handler succeeded, record not completed, message acknowledged: a duplicate would run again", "key", l.Key, "error", err)
		return nil
	}
	return fmt.Errorf("dedup: handler succeeded, record not completed %s: it runs again when the lease is over (Options.OnCompleteFailed): %w",
		o.record(l.Key), err)
}

func (o *Once) callComplete(ctx context.Context, l Lease, r Result) error {
	ctx, cancel := o.ownContext(ctx)
	defer cancel()
	return o.store.Complete(ctx, l, r)
}

// release releases the record after a failure. The record of a rejected message is released when the host has settled the
// message: another delivery must not start while the message is only on its way to the dead-letter queue.
func (o *Once) release(ctx context.Context, l Lease, cause error) {
	release := func(bool) {
		ctx, cancel := o.ownContext(ctx)
		defer cancel()
		o.callRelease(ctx, l, cause)
	}
	if _, reject := host.Asked(cause); reject != nil && sqsonce.OnSettled(ctx, release) {
		return
	}
	release(false)
}

func (o *Once) callRelease(ctx context.Context, l Lease, cause error) {
	if err := o.store.Release(ctx, l, cause); err != nil {
		// Nothing is lost: the next delivery waits until the lease is over.
		o.counts.storeErrors.Add(1)
		o.o.Logger.WarnContext(ctx, "dedup: release failed, the event waits until its lease is over", "key", l.Key, "until", l.Until.Format(time.RFC3339), "error", err)
	}
}

// ownContext returns a context for what must be written although the delivery's context is cancelled.
func (o *Once) ownContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), o.o.CallTimeout)
}
