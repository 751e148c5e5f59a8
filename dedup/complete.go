package dedup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// The pauses between the tries of a complete or release. With the renewals, whose pauses are leastRetry at least, a store
// that is away gets about one call a second for an event.
const (
	firstBackoff = 100 * time.Millisecond
	mostBackoff  = 5 * time.Second
)

// pause returns a random time from half of d to d, which doubles with each try.
func pause(try int) time.Duration {
	d := host.Double(firstBackoff, mostBackoff, try)
	return d/2 + rand.N(d/2)
}

// complete records the handler's success. It is tried at least once, also after the lease's end or when the host has given
// the message up: the store accepts it while no other owner took over. It is retried while the host has the message, and
// the lease is renewed meanwhile.
//
// The record is never released here, whatever the store answers: the event has had its effect. A release would let the
// next delivery repeat the effect at once. The lease gives an answer that is slow or lost the time to be confirmed.
func (o *Once) complete(ctx context.Context, rl *recordLease, r Result) error {
	l, begun := rl.current(), time.Now()
	own := context.WithoutCancel(ctx)
	err := o.callComplete(own, l, r)
	if retryable(err) {
		// Now, and not when it has failed for good: while the store is away, all slots of a host may be here.
		o.o.Logger.WarnContext(ctx, "dedup: handler succeeded, record not completed, trying again", "key", l.Key, "error", err)
		retry, cancel := o.retryContext(ctx, rl, begun)
		defer cancel()
		rl.renewAgain(own, cancel)
		defer rl.stopRenewing(true)
		for try := 1; retryable(err) && host.Wait(retry, pause(try)); try++ {
			err = o.callComplete(retry, l, r)
		}
	}
	// The store refuses a renewal also when an earlier complete, whose answer was lost, has reached it: ask for that answer.
	if refusal := rl.refusedRenewal(); refusal != nil && retryable(err) {
		if err = o.callComplete(own, l, r); retryable(err) {
			err = refusal
		}
	}

	switch {
	case err == nil:
		o.cache.add(rl.task.key, r.Validation)
		return nil
	case errors.Is(err, sqsonce.ErrLeaseLost):
		rl.lose(err)
		return rl.lostError()
	}
	o.counts.completeFailed.Add(1)
	o.incident(ctx, Incident{Key: l.Key, Kind: IncidentNotCompleted, Fence: l.Fence, Err: err})
	if o.o.OnCompleteFailed == Acknowledge {
		o.o.Logger.ErrorContext(ctx, "dedup: handler succeeded, record not completed, message acknowledged: a duplicate would run again", "key", l.Key, "error", err)
		return nil
	}
	again := retryable(err)
	err = fmt.Errorf("dedup: handler succeeded, record not completed %s: it runs again when the lease is over (Options.OnCompleteFailed): %w",
		o.record(l.Key), err)
	if again {
		err = sqsonce.Unavailable(err) // the handler did not fail
	}
	return err
}

// retryable reports whether a complete may succeed when it is sent again.
func retryable(err error) bool {
	_, unusable := errors.AsType[*sqsonce.FieldError](err)
	return err != nil && !unusable && !errors.Is(err, sqsonce.ErrLeaseLost)
}

// retryContext returns the context of a complete's retries. A host ends the handler's context when it has no more time for
// the message, or no longer has it. Other callers may have a context that never ends: theirs ends with the lease.
func (o *Once) retryContext(ctx context.Context, rl *recordLease, begun time.Time) (context.Context, context.CancelFunc) {
	switch {
	case o.o.OnCompleteFailed == Acknowledge:
		return context.WithDeadline(ctx, begun.Add(o.o.CallTimeout))
	case settle.Hosted(ctx):
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), rl.left())
}

func (o *Once) callComplete(ctx context.Context, l Lease, r Result) error {
	ctx, cancel := context.WithTimeout(ctx, o.o.CallTimeout)
	defer cancel()
	err := o.store.Complete(ctx, l, r)
	if err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) {
		o.counts.storeErrors.Add(1)
	}
	return err
}
