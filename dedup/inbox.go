// This file is for inboxes, which call it by package internal/inboxkit. An inbox runs the handler's writes and the record's
// complete in one transaction.

package dedup

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/hook"
)

func init() {
	hook.Offer(map[string]any{
		"dedup.guard": (*Once).guard, "dedup.leaseFrom": leaseFrom, "dedup.stopRenewal": stopRenewal, "dedup.handlerResult": handlerResult,
		"dedup.recording": recording,
	})
}

var errNoLease = errors.New("dedup: the context carries no record lease: pass the context that guard gave")

// guard is [Once.Handler] for a function whose own transaction may complete the record.
//
// f runs under the record lease. Its context carries the lease for [leaseFrom], [FenceFrom] and [stopRenewal]. The
// context is cancelled with cause [sqsonce.ErrLeaseLost] when a renewal is refused, or when the lease ends before a
// renewal is answered.
//
// The results of f decide about the record:
//
//   - completed and nil: f's transaction completed the record, under the condition that l.Owner still owned it. guard
//     does not write to the record, and remembers the key as completed.
//   - completed and an error: the same, and guard returns the error. The next delivery is acknowledged and does not
//     run.
//   - not completed and nil: guard completes the record, as Handler does.
//   - not completed and an error: guard releases the record with the error and returns it. f also returns the error if
//     its transaction has an unknown outcome, so the transaction must be refused after a release.
//
// Under the policy OnStoreDownRunAnyway, f is called with the zero Lease while the store can't be reached. f must not
// write to the record then.
func (o *Once) guard(f func(ctx context.Context, m *sqsonce.Message, l Lease) (completed bool, err error)) sqsonce.Handler {
	o.countHandler()
	return func(ctx context.Context, m *sqsonce.Message) error {
		t, err := o.task(ctx, m)
		if err != nil {
			return err
		}
		t.run = func(ctx context.Context, l Lease) ending {
			completed, err := f(ctx, m, l)
			return ending{completed: completed, commits: true, err: err}
		}
		return o.do(ctx, t)
	}
}

// countHandler is called for each handler that is made of the Once. The second call logs a warning, because two handlers of one Once share their events, and each event runs in only one of
// them. If one handler serves two queues, make it once and give it to both hosts.
func (o *Once) countHandler() {
	if o.handlers.Add(1) == 2 {
		o.o.Logger.Warn("dedup: two handlers of one Once share their events, each event runs in only one of them: give each handler a Once with its own consumer name, or use one handler for both queues",
			"consumer", o.consumer)
	}
}

// leaseFrom returns the record lease under which ctx's handler runs, as the last renewal
// left it. It returns false without such a lease. If leases are nested, it returns the innermost.
func leaseFrom(ctx context.Context) (Lease, bool) {
	rl, ok := recordLeaseFrom(ctx)
	if !ok {
		return Lease{}, false
	}
	return rl.current(), true
}

// handlerResult returns the result that an inbox's transaction completes the record with, after a handler under ctx's lease has
// returned err: nil, or a success without an effect.
func handlerResult(ctx context.Context, err error) Result {
	return ctx.Value(leaseContextKey{}).(*recordLease).result(nil, err)
}

// recording tells the host whether the handler under ctx's lease has returned, so that its inbox has the message: without it guard's
// function counts as the handler until it calls [stopRenewal] or returns. An inbox that calls the handler again says so before.
func recording(ctx context.Context, on bool) {
	if rl, ok := recordLeaseFrom(ctx); ok {
		rl.tellRecording(ctx, on)
	}
}

// stopRenewal ends the renewals of the record lease under which ctx's handler runs. Call
// it before a transaction that writes the record, after the user's code and just before the commit. A renewal at the
// same time as the transaction would make one of the two fail with a conflict. A second call returns the lease as it is
// by then.
//
// If less than least is left of the lease, stopRenewal first renews it once, to the full length. If a renewal is in
// flight, stopRenewal waits for it, even if ctx was cancelled. After stopRenewal has returned, this process does not
// read or write the record until the handler has returned. The lease's end does not cancel the context any more. From
// here on the commit's own condition on the owner decides.
//
// The transaction and its retries should end by the returned Until. Run them on a context of their own
// ([context.WithoutCancel] and a timeout), since a host that stops cancels ctx while the commit is still allowed.
//
// The error matches [sqsonce.ErrLeaseLost] if another owner took over. Any other error is unavailable and says that the lease
// has expired and that the store could not tell who owns the record. After an error the transaction must not be sent.
//
// A lease that ends with the process (Message.KillAt) is not renewed, whatever least is.
func stopRenewal(ctx context.Context, least time.Duration) (Lease, error) {
	rl, ok := recordLeaseFrom(ctx)
	if !ok {
		return Lease{}, errNoLease
	}
	rl.tellRecording(ctx, true)
	return rl.prepareCommit(ctx, least)
}
