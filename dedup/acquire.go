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

// acquireGrace is how long an acquire may take beyond CallTimeout. A store that keeps to CallTimeout by itself says more,
// such as that another owner has the lock.
const acquireGrace = time.Second

// drainTime is how long a delivery waits for the release of its acquire, which then goes on without it. It is less than
// the 250 ms at least in which the handlers of a Lambda function have to return.
const drainTime = 200 * time.Millisecond

// afterOwner is how long after the other owner's lease a refused delivery comes back: SQS counts in whole seconds.
const afterOwner = time.Second

// acquire asks the store for the record. The owner's name is made before the first request, so that the store recognises
// a copy of the request, and is never used for another acquire.
func (o *Once) acquire(ctx context.Context, rl *recordLease) (Grant, error) {
	g, err := o.store.Acquire(rl.awaitAcquire(ctx, o.patience(&rl.task)), Claim{
		Key:          rl.task.key,
		Owner:        rl.owner,
		Lease:        rl.length,
		Retention:    o.o.Retention,
		ReceiveCount: rl.task.attempt,
		NoTakeover:   o.o.OnCrash != OnCrashRerun,
	})
	if g.Lease.OwnRetry {
		o.counts.ownRetries.Add(1)
		o.incident(ctx, Incident{Key: rl.task.key, Kind: IncidentOwnRetry, Fence: g.Lease.Fence})
	}
	if g.Foreign {
		o.counts.foreign.Add(1)
		o.incident(ctx, Incident{Key: rl.task.key, Kind: IncidentForeignWriter, Fence: g.Lease.Fence})
	}
	return g, err
}

// patience is how long a delivery waits for the answer to its acquire. Under the policy OnStoreDownRunAnyway the
// handler runs without an answer. If the host ends the process at a known instant, two thirds of the time are the
// handler's. Under OnStoreDownFailClosed an earlier end gains nothing, and a first call may be slow.
func (o *Once) patience(t *task) time.Duration {
	d := o.o.CallTimeout + acquireGrace
	if left := time.Until(t.killAt); left > 0 && o.o.OnStoreDown == OnStoreDownRunAnyway {
		d = min(d, left/3)
	}
	return d
}

// releaseUnknown releases the lease that an acquire without an answer may have stored. Without the release the event would
// wait for the end of an unused lease, and look like a crash then. The store refuses an acquire that it sees later.
func (o *Once) releaseUnknown(ctx context.Context, rl *recordLease, cause error) {
	l := rl.current()
	l.Key, l.Owner, l.Retention = rl.task.key, rl.owner, o.o.Retention
	released, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer end()
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.o.CallTimeout)
		defer cancel()
		o.logRelease(ctx, l, o.releaseAgain(own, l, cause)) // lost: nothing was stored
	}()
	host.Wait(released, drainTime)
}

// answered acts on the store's verdict, and returns the delivery's error:
//
//	verdict      counted             decided          the delivery
//	granted      First or Takeovers  first, takeover  runs the handler, and logs a takeover; or suspect: see suspect.go
//	completed    Completed           duplicate        is acknowledged, or gets the result
//	in_progress  InProgress          in_progress      comes back when the other owner's lease is over
//	crashed      -                   crashed          fails or is rejected: Options.OnCrash
//	lease_lost   LeasesLost          lease_lost       ends, and the host does nothing for the message
//
// A granted lease that turns out to be lost before the start ends as lease_lost does.
func (o *Once) answered(ctx context.Context, rl *recordLease, g Grant) error {
	t := &rl.task
	switch g.Verdict {
	case VerdictGranted:
		if err := o.suspect(ctx, t, g.Lease); err != nil {
			return err
		}
		return o.run(ctx, rl, g.Lease)
	case VerdictCompleted:
		return o.duplicate(ctx, t, g.Result, false)
	case VerdictInProgress:
		return o.inProgress(ctx, t, Decision{Until: g.Until}, nil)
	case VerdictCrashed:
		return o.crashed(ctx, t)
	case VerdictLost:
		return o.lost(ctx, t, fmt.Errorf("dedup: acquire refused, handler not called %s: %w", o.record(t.key), sqsonce.ErrLeaseLost))
	}
	panic("dedup: " + g.Verdict.String()) // checkGrant lets none through
}

// acquireFailed returns the delivery's error for an acquire without a verdict.
func (o *Once) acquireFailed(ctx context.Context, rl *recordLease, err error) error {
	t := &rl.task
	o.counts.storeErrors.Add(1)
	unknown, held := errors.Is(err, ErrOutcomeUnknown), errors.Is(err, errNoteHeld)
	err = o.unrun(ctx, fmt.Errorf("dedup: acquire failed, handler not called %s: %w", o.record(t.key), err))
	down := errors.Is(err, sqsonce.ErrUnavailable) && !errors.Is(err, sqsonce.ErrMisconfigured)
	if o.o.OnStoreDown == OnStoreDownRunAnyway && down && !held && ctx.Err() == nil {
		return o.runWithoutRecord(ctx, rl, err)
	}
	o.decided(ctx, t, Decision{Outcome: failedOutcome(ctx, err), Err: err})
	if unknown {
		o.releaseUnknown(ctx, rl, err)
	}
	if ctx.Err() != nil {
		return settle.NotRun(err)
	}
	return err
}

// duplicate acknowledges a delivery of a completed event. A delivery with another payload is not of that event: it is
// rejected, and the record stays as it is.
func (o *Once) duplicate(ctx context.Context, t *task, r Result, memory bool) error {
	if t.validation != "" && r.Validation != "" && t.validation != storable(r.Validation) { // an earlier version stored any hash as it was
		o.decided(ctx, t, Decision{Outcome: DecidedMismatch, Memory: memory})
		return sqsonce.Reject(fmt.Errorf("%w %s: give each event a key of its own", ErrPayloadMismatch, o.record(t.key)))
	}
	o.counts.completed.Add(1)
	o.decided(ctx, t, Decision{Outcome: DecidedDuplicate, Memory: memory})
	if t.replay != nil {
		return t.replay(r)
	}
	return nil
}

// inProgress refuses a delivery whose record has another owner. The host learns when that owner's lease ends, so that the
// message does not come back before; and, by ended, when a peer's delivery has ended.
func (o *Once) inProgress(ctx context.Context, t *task, d Decision, ended <-chan struct{}) error {
	o.counts.inProgress.Add(1)
	d.Outcome = DecidedInProgress
	o.decided(ctx, t, d)
	err := fmt.Errorf("%w %s", &InProgressError{Until: d.Until}, o.record(t.key))
	if ended != nil {
		err = host.WithEnded(err, ended)
	}
	return sqsonce.RetryAfter(time.Until(d.Until)+afterOwner, err)
}

// lost ends a delivery whose owner the store refused before its handler started.
func (o *Once) lost(ctx context.Context, t *task, err error) error {
	o.counts.leasesLost.Add(1)
	o.decided(ctx, t, Decision{Outcome: DecidedLost, Err: err})
	return err
}

// crashed refuses a delivery whose last owner crashed, under the policies that do not run it again. The error does not
// match ErrInProgress: no delivery is in progress, and a host that waited for one would wait for ever.
func (o *Once) crashed(ctx context.Context, t *task) error {
	o.decided(ctx, t, Decision{Outcome: DecidedCrashed})
	if o.o.OnCrash == OnCrashBlock {
		return fmt.Errorf("%w %s: find out whether its effect happened. If so complete the record, else free it to run the event again", ErrCrashed, o.record(t.key))
	}
	err := fmt.Errorf("%w %s: find out whether its effect happened. If so complete the record, else free it and redrive the message", ErrCrashed, o.record(t.key))
	// The record is released when the dead-letter queue has confirmed the message, so that a redrive runs it. Before that
	// a redelivery of this message would run.
	sqsonce.OnSettled(ctx, func(deadLettered bool) {
		if deadLettered {
			o.releaseCrashed(ctx, t)
		}
	})
	return sqsonce.Reject(err)
}

// releaseCrashed takes the record over from the owner that crashed, and releases it without a run of the handler. Its error counts
// as a crash ([Record.Crashes]): an operator must know before a redrive.
func (o *Once) releaseCrashed(ctx context.Context, t *task) {
	rl := newRecordLease(o, *t)
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.o.CallTimeout)
	defer cancel()
	g, err := o.store.Acquire(own, Claim{Key: t.key, Owner: rl.owner, Lease: rl.length, Retention: o.o.Retention, ReceiveCount: t.attempt})
	if err == nil && g.Verdict != VerdictGranted {
		err = fmt.Errorf("dedup: acquire: %s", g.Verdict)
	}
	if err != nil {
		o.o.Logger.WarnContext(ctx, "dedup: message dead-lettered after a crash, record not released: reopen it before a redrive", about(ctx, t.key, "error", err)...)
		o.incident(ctx, Incident{Key: t.key, Kind: IncidentNotReleased, Err: err})
		return
	}
	o.releaseUnused(ctx, g.Lease, crashedNote{g.Lease})
}

// runWithoutRecord runs the handler while the store cannot be reached, under the policy OnStoreDownRunAnyway. It
// attempts one complete, because the acquire may have been granted and only its answer lost.
func (o *Once) runWithoutRecord(ctx context.Context, rl *recordLease, cause error) (err error) {
	t := &rl.task
	o.o.Logger.WarnContext(ctx, "dedup: acquire failed, handler runs without a record and may run more than once", about(ctx, t.key, "error", cause)...)
	o.decided(ctx, t, Decision{Outcome: DecidedUnguarded, Err: cause})
	l := Lease{Key: t.key, Owner: rl.owner, Retention: o.o.Retention, ReceiveCount: t.attempt}
	var e ending
	host.Run(func() error {
		rl.tellRecording(ctx, false)
		settle.Ran(ctx, true)
		e = t.run(&leaseContext{ctx, nil}, Lease{})
		return e.err
	}, func(handlerErr error) {
		rl.tellRecording(ctx, true)
		err = handlerErr
		r := rl.result(e.data, err)
		if err != nil && r.Skipped == nil {
			if errors.Is(cause, ErrOutcomeUnknown) {
				o.releaseUnknown(ctx, rl, err)
			}
			return
		}
		if err := o.attempt(context.WithoutCancel(ctx), &success{lease: l, result: r, message: settle.MessageID(ctx)}); err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) {
			o.o.Logger.WarnContext(ctx, "dedup: handler succeeded without a record: a duplicate runs again", about(ctx, t.key, "error", err)...)
		}
	})
	return err
}
