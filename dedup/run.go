package dedup

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// ending is how a handler's run ended.
type ending struct {
	data      []byte // that a later Do replays
	completed bool   // by the handler's own transaction
	commits   bool   // err may be that of its commit
	err       error
}

// run starts the handler under the lease and records what it returned. It does so after runtime.Goexit too: else the
// event would wait for the end of the lease. The handler runs on the caller's goroutine: one of its own would cost each
// delivery two wake-ups.
func (o *Once) run(ctx context.Context, rl *recordLease, l Lease) (err error) {
	t := &rl.task
	if err := o.start(ctx, rl, l); err != nil {
		return err
	}
	handlerCtx, cancel := rl.startHandler(ctx)
	defer cancel(nil)

	var e ending
	host.Run(func() error {
		o.decided(handlerCtx, t, Decision{Outcome: o.started(ctx, l), Fence: l.Fence}) // the lease is renewed meanwhile
		rl.tellRecording(ctx, false)
		settle.Ran(ctx, true)
		e = t.run(handlerCtx, rl.current())
		return e.err
	}, func(handlerErr error) { // also a panic's
		rl.tellRecording(ctx, true)
		rl.leave(phaseReturned)
		e.err = handlerErr
		err = o.finish(ctx, rl, e)
	})
	return err
}

// start returns why the handler may not run under the lease that was just granted; nil: it may.
func (o *Once) start(ctx context.Context, rl *recordLease, l Lease) error {
	t := &rl.task
	if ctx.Err() != nil {
		err := o.notStarted(ctx, t)
		o.releaseUnused(ctx, l, err)
		return err
	}
	err := rl.ensureLive(ctx, l)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return o.lost(ctx, t, o.lostError(t.key, err))
	}
	o.counts.storeErrors.Add(1)
	// The handler did not run, whatever the store says of its failure.
	err = o.unavailable(fmt.Errorf("dedup: lease over before the start and not renewed, handler not called %s: %w", o.record(t.key), err))
	o.decided(ctx, t, Decision{Outcome: failedOutcome(ctx, err), Err: err})
	o.releaseUnused(ctx, l, err)
	return err
}

// notStarted is the error of a delivery whose context was cancelled before its handler could start. A deadline that is only the
// handler's says nothing about a message whose handler did not run.
func (o *Once) notStarted(ctx context.Context, t *task) error {
	err := o.unrun(ctx, fmt.Errorf("dedup: context cancelled, handler not called %s: %w", o.record(t.key), context.Cause(ctx)))
	o.decided(ctx, t, Decision{Outcome: DecidedCancelled, Err: err})
	return settle.NotRun(err)
}

// started counts a handler that runs under a lease, and returns the decision about its delivery.
func (o *Once) started(ctx context.Context, l Lease) DecisionOutcome {
	if !l.Takeover {
		o.counts.first.Add(1)
		return DecidedFirst
	}
	o.counts.takeovers.Add(1)
	o.o.Logger.WarnContext(ctx, "dedup: event taken over from an owner whose lease has ended", about(ctx, l.Key, "fence", l.Fence, "receive_count", l.ReceiveCount)...)
	return DecidedTakeover
}

// finish records how the handler's run ended.
func (o *Once) finish(ctx context.Context, rl *recordLease, e ending) error {
	lost := rl.lostError()
	if errors.Is(e.err, ErrForeignWriter) && lost == nil {
		o.counts.foreign.Add(1) // an inbox's commit was refused
	}
	if e.completed {
		rl.logAnswer(ctx)
		o.cache.add(rl.task.key, rl.task.validation)
		return e.err
	}
	r := rl.result(e.data, e.err)
	switch {
	case e.err == nil:
		return o.complete(ctx, rl, r)
	case r.Skipped != nil:
		if err := o.complete(ctx, rl, r); err != nil {
			return handlerReturned(err, e.err)
		}
		return e.err
	case lost != nil:
		return handlerReturned(lost, e.err)
	}
	err := o.fail(ctx, rl, e)
	if e.commits { // nothing renews the lease by now: the question waits until the record is free
		err = o.questioned(ctx, err)
	}
	return err
}

// result is all that the record is completed with after a handler that returned err. An inbox gets it by handlerResult.
func (rl *recordLease) result(data []byte, err error) Result {
	r := Result{Data: data, Validation: rl.task.validation}
	if rl.task.replay == nil && host.Void(err) { // for Do it is an error like any other
		r.Skipped = host.Described(rl.once.o.ErrorText, err)
	}
	return r
}

// handlerReturned is the error of a delivery that does not decide about its event. What the handler returned is text only:
// not even a Reject may move the message.
func handlerReturned(err, handlerErr error) error {
	return fmt.Errorf("%w: handler returned: %v", err, handlerErr)
}
