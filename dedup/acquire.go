package dedup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// afterHolder is how long after the holder's lease a duplicate comes back: SQS counts visibility in whole seconds.
const afterHolder = time.Second

// acquire takes the record for h. Its owner is made before the first request, so that a copy of the request is
// recognised as ours, and is never used for another attempt.
func (o *Once) acquire(ctx context.Context, h *hold) (Lease, error) {
	l, err := o.store.Acquire(ctx, Claim{
		Key:        h.task.key,
		Owner:      h.owner,
		Lease:      h.length,
		Retention:  o.o.Retention,
		Attempt:    h.task.attempt,
		Validation: h.task.validation,
		NoTakeover: o.o.OnCrash != Rerun,
	})
	if err == nil && l.OwnRetry {
		o.counts.ownRetries.Add(1)
	}
	if foreign(l, err) {
		o.counts.foreign.Add(1)
	}
	return l, err
}

func foreign(l Lease, err error) bool {
	if e, ok := errors.AsType[*CompletedError](err); ok {
		return e.Foreign
	}
	if e, ok := errors.AsType[*InProgressError](err); ok {
		return e.Foreign
	}
	return err == nil && l.Foreign
}

// refused turns the store's answer into the delivery's.
func (o *Once) refused(ctx context.Context, t task, err error) error {
	if e, ok := errors.AsType[*CompletedError](err); ok {
		return o.duplicate(t, e.Result)
	}
	if e, ok := errors.AsType[*InProgressError](err); ok {
		if e.Crashed {
			return o.crashed(ctx, t)
		}
		return o.inProgress(e.Until, nil)
	}
	if errors.Is(err, sqsonce.ErrLeaseLost) {
		o.counts.leasesLost.Add(1)
		return err
	}
	o.counts.storeErrors.Add(1)
	err = fmt.Errorf("dedup: acquire %s: %w", t.key, err)
	if _, unusable := errors.AsType[*sqsonce.FieldError](err); unusable || ctx.Err() != nil {
		return err
	}
	if o.o.OnStoreDown == RunAnyway {
		return o.runUnguarded(ctx, t, err)
	}
	return err
}

// duplicate answers a delivery of an event that was completed before. Another payload under the same key is not that
// event: the message is rejected, and the record stays as it is.
func (o *Once) duplicate(t task, r Result) error {
	if t.validation != "" && r.Validation != "" && t.validation != r.Validation {
		return sqsonce.Reject(fmt.Errorf("%w: %s", ErrPayloadMismatch, t.key))
	}
	o.counts.completed.Add(1)
	if t.replay != nil {
		return t.replay(r)
	}
	return nil
}

// inProgress tells the host when the holder's lease ends, so that the message comes back then and not before; or when
// the holder has ended, where that is known.
func (o *Once) inProgress(until time.Time, ended <-chan struct{}) error {
	o.counts.inProgress.Add(1)
	var err error = &InProgressError{Until: until}
	if ended != nil {
		err = host.WithEnded(err, ended)
	}
	return sqsonce.RetryAfter(time.Until(until)+afterHolder, err)
}

// crashed answers a delivery whose last holder vanished, under the policies that do not run it again. Neither answer
// matches ErrInProgress: nobody is at work, and a host that waited for the holder would wait for ever.
func (o *Once) crashed(ctx context.Context, t task) error {
	err := fmt.Errorf("%w: %s", ErrCrashed, t.key)
	if o.o.OnCrash == Block {
		return err
	}
	// Once the message is safely in the dead-letter queue the record is released, so that an operator's redrive runs it.
	// Not before: this message, delivered again, would run.
	sqsonce.OnSettled(ctx, func(deadLettered bool) {
		if deadLettered {
			o.freeCrashed(ctx, t, err)
		}
	})
	return sqsonce.Reject(err)
}

// freeCrashed takes the record over from the holder that vanished, and releases it without running the handler.
func (o *Once) freeCrashed(ctx context.Context, t task, cause error) {
	h := newHold(o, t)
	ctx, cancel := o.own(ctx)
	defer cancel()
	l, err := o.store.Acquire(ctx, Claim{Key: t.key, Owner: h.owner, Lease: h.length, Retention: o.o.Retention, Attempt: t.attempt})
	if err != nil {
		o.o.Logger.WarnContext(ctx, "dedup: crashed record stays blocked", slog.String("key", t.key), slog.Any("error", err))
		return
	}
	o.free(ctx, l, cause)
}

// runUnguarded runs the handler without a record: the store is down and the policy says so.
func (o *Once) runUnguarded(ctx context.Context, t task, cause error) (err error) {
	o.o.Logger.WarnContext(ctx, "dedup: store down, running without a record", slog.String("key", t.key), slog.Any("error", cause))
	host.Run(func() error {
		_, _, err := t.run(ctx, Lease{})
		return err
	}, func(handlerErr error) { err = handlerErr })
	return err
}
