package dedup

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
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
	rl.startHandler(ctx, handlerCtx, cancel)

	var r Result
	completed := false
	host.Run(func() (err error) {
		o.decided(handlerCtx, t, Decision{Outcome: granted(l), Fence: l.Fence}) // the lease is renewed meanwhile
		r, completed, err = t.run(handlerCtx, rl.current())
		return err
	}, func(handlerErr error) {
		rl.leave(phaseReturned)
		defer settle.Record(ctx)()
		err = o.finish(ctx, rl, r, completed, handlerErr)
	})
	return err
}

// start decides whether the handler may run under the lease that was just granted.
func (o *Once) start(ctx context.Context, t task, rl *recordLease, l Lease) error {
	if ctx.Err() != nil {
		err := o.notStarted(ctx, t)
		o.releaseUnused(ctx, l, err)
		return err
	}
	err := rl.ensureLive(ctx, l)
	switch {
	case errors.Is(err, sqsonce.ErrLeaseLost):
		o.counts.leasesLost.Add(1)
		err = o.lostError(t.key, err)
		o.decided(ctx, t, Decision{Outcome: DecidedLost, Err: err})
		return err
	case err != nil:
		o.counts.storeErrors.Add(1)
		// The handler did not run, whatever the store says of its failure.
		err = o.unavailable(fmt.Errorf("dedup: lease over before the start and not renewed, handler not called %s: %w", o.record(t.key), err))
		o.decided(ctx, t, Decision{Outcome: failedOutcome(ctx), Err: err})
		o.releaseUnused(ctx, l, err)
		return err
	case l.Takeover:
		o.counts.takeovers.Add(1)
		o.o.Logger.WarnContext(ctx, "dedup: event taken over from an owner whose lease has ended", "key", l.Key, "fence", l.Fence, "receive_count", l.Attempts)
	default:
		o.counts.first.Add(1)
	}
	return nil
}

// notStarted is the error of a delivery whose context was cancelled before its handler could start. A deadline that is only the
// handler's says nothing about a message whose handler did not run.
func (o *Once) notStarted(ctx context.Context, t task) error {
	err := o.unrun(ctx, fmt.Errorf("dedup: context cancelled, handler not called %s: %w", o.record(t.key), context.Cause(ctx)))
	o.decided(ctx, t, Decision{Outcome: DecidedCancelled, Err: err})
	return settle.NotRun(err)
}

// granted is the decision about a delivery whose handler runs under a lease.
func granted(l Lease) DecisionOutcome {
	if l.Takeover {
		return DecidedTakeover
	}
	return DecidedFirst
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
	case rl.task.replay == nil && sqsonce.OutcomeOf(handlerErr).Kind == sqsonce.OutcomeSkipped: // for Do it is an error like any other
		r = Result{Validation: rl.task.validation, Skipped: host.Described(o.o.ErrorText, handlerErr)}
		if err := o.complete(ctx, rl, r); err != nil {
			return handlerReturned(err, handlerErr)
		}
		return handlerErr
	case lost != nil:
		return handlerReturned(lost, handlerErr)
	}
	return o.fail(ctx, rl, handlerErr)
}

// handlerReturned is the error of a delivery that does not decide about its event. What the handler returned is text only:
// not even a Reject may move the message.
func handlerReturned(err, handlerErr error) error {
	return fmt.Errorf("%w: handler returned: %v", err, handlerErr)
}
