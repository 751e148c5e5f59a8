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

// The pauses between the attempts of a complete or release. With the renewals, whose pauses are leastRetry at least, a
// store that is down gets about one call a second for an event.
const (
	firstBackoff = time.Second
	mostBackoff  = 5 * time.Second
)

// pause returns a random time from half of d to d, which doubles with each attempt.
func pause(try int) time.Duration {
	d := host.Double(firstBackoff, mostBackoff, try)
	return d/2 + rand.N(d/2)
}

// complete records the handler's success. It is sent at least once, also after the lease's end or when the host has given
// the message up: the store accepts it while no other owner took over. It is sent again while the host has the message, and
// the lease is renewed meanwhile. Then the process goes on in the background: see unrecorded.
//
// The record is never released here, whatever the store answers: the event has had its effect. A release would let the
// next delivery repeat the effect at once. The lease gives an answer that is slow or lost the time to be confirmed.
func (o *Once) complete(ctx context.Context, rl *recordLease, r Result) error {
	s := success{result: r, since: time.Now(), message: settle.MessageID(ctx)}
	s.lease = rl.current()
	err := o.attempt(o.ends.of(ctx, o.o.CallTimeout), &s)
	if retryable(err) {
		err = o.completeAgain(ctx, rl, &s)
	}
	switch {
	case err == nil:
		rl.logAnswer(ctx)
		o.cache.add(rl.task.key, r.Validation)
		return nil
	case errors.Is(err, sqsonce.ErrLeaseLost):
		rl.lose(err)
		return rl.lostError()
	}
	return o.notCompleted(ctx, &s, err)
}

// notCompleted returns the error of a delivery whose host has no more time for its success. The process goes on with it.
func (o *Once) notCompleted(ctx context.Context, s *success, err error) error {
	o.counts.completeFailed.Add(1)
	o.incident(ctx, Incident{Key: s.lease.Key, Kind: IncidentNotCompleted, Fence: s.lease.Fence, Err: err})
	again := retryable(err)
	if again {
		o.unrecorded.add(*s, o.recordLater)
	}
	if o.o.OnCompleteFailed == OnCompleteFailedAcknowledge {
		o.o.Logger.ErrorContext(ctx, "dedup: handler succeeded, record not completed, message acknowledged: a duplicate would run again", about(ctx, s.lease.Key, "error", err)...)
		return nil
	}
	err = fmt.Errorf("dedup: handler succeeded, record not completed %s: another process that takes the event over runs it again (Options.OnCompleteFailed): %w",
		o.record(s.lease.Key), err)
	if again {
		err = o.notYet(s, err)
	}
	return err
}

// notYet is the error of a delivery whose success the process goes on to complete. The handler did not fail. But if the store
// refuses this complete alone, that is no outage, whatever the store says: a host must not keep the message until it ends.
func (o *Once) notYet(s *success, err error) error {
	if s.refused() {
		return refusedError{err}
	}
	return o.unavailable(err)
}

// refusedError is an error that is no outage, whatever is in it.
type refusedError struct{ error }

func (e refusedError) Is(target error) bool {
	return target != sqsonce.ErrUnavailable && target != sqsonce.ErrMisconfigured && errors.Is(e.error, target)
}

// completeAgain sends a complete until it is answered, while the host has the message.
func (o *Once) completeAgain(ctx context.Context, rl *recordLease, s *success) (err error) {
	// Now, and not when it has failed for good: while the store is down, all slots of a host may be here.
	rl.logFailure(ctx, "dedup: handler succeeded, record not completed: the store is asked again", s.failed)
	o.unrecorded.keep(*s) // a copy of the event in this process completes it too, where the lease is over
	defer func() {
		if !retryable(err) {
			o.unrecorded.remove(*s)
		}
	}()
	err, refusal := s.failed, error(nil)
	retry, cancel := o.retryContext(ctx, rl, s.since)
	defer cancel()
	rl.startCompleting(func(err error) {
		refusal = err
		cancel()
	})
	defer rl.leave(phaseReturned)
	logged := false
	for try := 1; retryable(err) && !s.refused() && host.Wait(retry, pause(try)); try++ {
		err = o.attempt(retry, s)
		if !logged && retryable(err) && time.Since(s.since) >= o.o.LeaseDuration {
			// For each event, also in an outage: an operator needs the keys of all effects that the store does not know of.
			logged = true
			o.o.Logger.WarnContext(ctx, "dedup: handler succeeded, record not completed for as long as a lease: the store is asked until the host loses the message",
				about(ctx, s.lease.Key, "error", err)...)
		}
	}
	rl.leave(phaseReturned)
	// The store refuses a renewal also when an earlier complete, whose answer was lost, has reached it: ask for that answer.
	if refusal != nil && retryable(err) {
		if err = o.callComplete(context.WithoutCancel(ctx), s); retryable(err) {
			err = refusal
		}
	}
	return err
}

// retryable reports whether a complete may succeed when it is sent again.
func retryable(err error) bool {
	return err != nil && !refusesValue(err) && !errors.Is(err, sqsonce.ErrLeaseLost)
}

// refusesValue reports whether the store's own code refuses a value of the record.
func refusesValue(err error) bool {
	_, unusable := errors.AsType[*sqsonce.OptionError](err)
	return unusable
}

// mostRefusals is how often in a row a store may fail a complete and renew the same record.
const mostRefusals = 3

// attempt sends the complete of a success, once or again. The store may refuse to keep the payload hash or the result, and its
// answer need not say so. A renewal of the same record is the control: if the complete fails again after some that pass, it goes out
// without these. If that fails as often, the success is refused. A renewal that fails takes the place of a complete: a store that is
// down gets no more requests because of it.
func (o *Once) attempt(ctx context.Context, s *success) error {
	if failed := s.failed; failed != nil && !o.control(ctx, s) {
		s.failed = nil
		return failed
	}
	s.failed = o.callComplete(ctx, s)
	if refusesValue(s.failed) {
		o.completeBare(ctx, s)
	}
	return s.failed
}

// completeBare sends a complete without what the store refuses to keep, if it has that.
func (o *Once) completeBare(ctx context.Context, s *success) {
	if s.isBare() {
		return
	}
	o.strip(ctx, s)
	s.failed = o.callComplete(ctx, s)
}

// control renews the lease to the end that it has, and reports whether the complete may be sent again. One that never had anything that
// the store could refuse has no control: a renewal of its record does not show that the store completes others.
func (o *Once) control(ctx context.Context, s *success) (send bool) {
	if !s.stripped && s.isBare() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, o.o.CallTimeout)
	defer cancel()
	_, err := o.store.Renew(ctx, s.lease, max(time.Until(s.lease.Until), time.Second))
	switch {
	case err == nil:
		if s.refusals++; s.refusals == mostRefusals && !s.stripped {
			o.strip(ctx, s)
		}
		return true
	case errors.Is(err, sqsonce.ErrLeaseLost): // an earlier complete may have reached the store: only a complete asks that
		return true
	}
	s.refusals = 0
	return false
}

// strip takes from a success what the store refuses to keep.
func (o *Once) strip(ctx context.Context, s *success) {
	o.o.Logger.WarnContext(ctx, "dedup: handler succeeded, the store refused the payload hash or the result: record completed without them, later calls of Do return ErrNoResult, and payloads are not compared",
		named(s.message, s.lease.Key, "error", s.failed)...)
	s.result, s.stripped, s.refusals = s.result.bare(), true, 0
}

// retryContext returns the context of a complete's retries. It ends when the host has no more time for the message, or no longer
// has it. Other callers may have a context that never ends: theirs ends with the lease.
func (o *Once) retryContext(ctx context.Context, rl *recordLease, begun time.Time) (context.Context, context.CancelFunc) {
	hosts, hosted := settle.Host(ctx)
	switch {
	case o.o.OnCompleteFailed == OnCompleteFailedAcknowledge:
		return context.WithDeadline(hosts, begun.Add(o.o.CallTimeout))
	case hosted:
		return context.WithCancel(hosts)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), rl.left())
}

func (o *Once) callComplete(ctx context.Context, s *success) error {
	if _, ends := ctx.(callContext); !ends {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.o.CallTimeout)
		defer cancel()
	}
	err := o.store.Complete(ctx, s.lease, s.result)
	if err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) {
		o.counts.storeErrors.Add(1)
	}
	return err
}
