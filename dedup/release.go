package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// fail releases the record of a handler that failed, and returns the delivery's error.
//
// The record of a rejected message is released when the host has settled the message: another delivery must not start
// while the message is only on its way to the dead-letter queue. A postponed message has not failed: its record gets no error.
func (o *Once) fail(ctx context.Context, rl *recordLease, e ending) error {
	handlerErr := e.err
	if sqsonce.OutcomeOf(handlerErr).Kind == sqsonce.OutcomeRejected {
		if err := o.proveForReject(ctx, rl); err != nil {
			return handlerReturned(err, handlerErr)
		}
		l := rl.current()
		if sqsonce.OnSettled(ctx, func(bool) { o.releaseUnused(ctx, l, handlerErr) }) {
			return handlerErr
		}
	}
	cause := handlerErr
	if sqsonce.OutcomeOf(handlerErr).Kind == sqsonce.OutcomePostponed {
		cause = nil
	}
	err := o.release(ctx, rl, cause)
	switch {
	case errors.Is(err, sqsonce.ErrLeaseLost):
		rl.lose(err)
		return handlerReturned(rl.lostError(), handlerErr)
	case err == nil && !e.commits && errors.Is(handlerErr, sqsonce.ErrLeaseLost) && !errors.Is(context.Cause(&rl.handler), sqsonce.ErrLeaseLost):
		return notLost(handlerErr)
	case err == nil || rl.left() > 0:
		return handlerErr
	}
	// Another owner may run by now: that the handler failed is not this delivery's to say.
	unavailable := o.unavailable(fmt.Errorf("dedup: lease over and record not released %s: %w", o.record(rl.task.key), err))
	if errors.Is(handlerErr, sqsonce.ErrLeaseLost) {
		return handlerReturned(unavailable, handlerErr) // the store has not said so
	}
	return fmt.Errorf("%w: handler returned: %w", unavailable, handlerErr)
}

// proveForReject renews a lease that has expired. Another owner may have the event by now, and its message must not go to the
// dead-letter queue.
func (o *Once) proveForReject(ctx context.Context, rl *recordLease) error {
	if rl.left() > 0 {
		return nil
	}
	rl.setLength(time.Now())
	err := rl.renew(context.WithoutCancel(ctx))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return rl.lostError()
	}
	return o.unavailable(fmt.Errorf("dedup: lease over and not renewed, reject not obeyed %s: %w", o.record(rl.task.key), err))
}

// release releases the record after a failure. It makes at least one attempt, and further ones while the lease lasts and the
// host has the message.
func (o *Once) release(ctx context.Context, rl *recordLease, cause error) error {
	l := rl.current()
	hosts, _ := settle.Host(ctx)
	retry, cancel := context.WithTimeout(hosts, rl.left())
	defer cancel()
	err := o.releaseAgain(retry, l, cause)
	if err == nil {
		rl.logAnswer(ctx)
	}
	o.logRelease(ctx, l, err)
	return err
}

// releaseAgain makes one attempt, whatever ctx is, and further ones until ctx ends.
func (o *Once) releaseAgain(ctx context.Context, l Lease, cause error) error {
	err := o.callRelease(context.WithoutCancel(ctx), l, cause)
	for try := 1; retryable(err) && host.Wait(ctx, pause(try)); try++ {
		err = o.callRelease(ctx, l, cause)
	}
	return err
}

// releaseUnused releases a record without a retry. If that fails, the next delivery waits for the lease's end.
func (o *Once) releaseUnused(ctx context.Context, l Lease, cause error) {
	err := o.callRelease(context.WithoutCancel(ctx), l, cause)
	if errors.Is(err, sqsonce.ErrLeaseLost) {
		o.counts.leasesLost.Add(1)
		o.o.Logger.WarnContext(ctx, "dedup: record not released: another owner has taken the record over, or it was deleted", about(ctx, l.Key, "fence", l.Fence)...)
		o.incident(ctx, Incident{Key: l.Key, Kind: lostKind(err), Fence: l.Fence, Err: err})
	}
	o.logRelease(ctx, l, err)
}

func (o *Once) callRelease(ctx context.Context, l Lease, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, o.o.CallTimeout)
	defer cancel()
	if _, note := cause.(crashedNote); !note { // which Record.Crashes reads
		cause = host.Described(o.o.ErrorText, cause)
	}
	err := o.store.Release(ctx, l, cause)
	if err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) {
		o.counts.storeErrors.Add(1)
	}
	return err
}

func (o *Once) logRelease(ctx context.Context, l Lease, err error) {
	if err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) { // a lost lease leaves nothing that waits
		o.o.Logger.Log(ctx, o.outageLevel(), "dedup: record not released, the event waits until its lease ends", about(ctx, l.Key, "until", l.Until.Format(time.RFC3339), "error", err)...)
		o.incident(ctx, Incident{Key: l.Key, Kind: IncidentNotReleased, Fence: l.Fence, Err: err})
	}
}
