// This file has what only the author of an inbox needs. An inbox runs the handler's writes and the record's complete in
// one transaction; it calls Guard, CountHandler, LeaseFrom and StopRenewal. Handlers, and users of an inbox, need none of them.

package dedup

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
)

var errNoLease = errors.New("dedup: the context carries no record lease: pass the context that Guard gave")

// Guard is for authors of an inbox. It is [Once.Handler] for a function whose own transaction may complete the record.
//
// f runs under the record lease. Its context carries the lease: see [LeaseFrom], [FenceFrom] and [StopRenewal]. The
// context is cancelled with cause [sqsonce.ErrLeaseLost] when a renewal is refused, or when the lease ends before a
// renewal is answered.
//
// What f returns decides about the record:
//
//   - completed and nil: f's transaction completed the record, under the condition that l.Owner still owned it. Guard
//     writes nothing and remembers the key as completed.
//   - completed and an error: the same, and Guard returns the error. The next delivery is acknowledged and does not run.
//   - not completed and nil: Guard completes the record, as Handler does.
//   - not completed and an error: Guard releases the record with the error and returns it. f also returns the error
//     where its transaction has an unknown outcome; the transaction must therefore be refused after a release.
//
// Under the policy OnStoreDownRunAnyway f is called with the zero Lease while the store cannot be reached. It must then write
// nothing to the record.
func (o *Once) Guard(ctx context.Context, m *sqsonce.Message, f func(ctx context.Context, l Lease) (completed bool, err error)) error {
	t, err := o.task(ctx, m)
	if err != nil {
		return err
	}
	t.run = func(ctx context.Context, l Lease) ending {
		completed, err := f(ctx, l)
		return ending{result: Result{Validation: l.Validation}, completed: completed, err: o.questioned(err)}
	}
	return o.do(ctx, t)
}

// CountHandler is for authors of an inbox: call it for each handler that is made of the Once, as Handler does. The second call
// logs a warning: two handlers of one Once share their events, so that each event runs in only one of them. Where one
// handler serves two queues, make it once and give it to both hosts.
func (o *Once) CountHandler() {
	if o.handlers.Add(1) == 2 {
		o.o.Logger.Warn("dedup: two handlers of one Once share their events, each event runs in one of them only: give each a Once with a consumer name of its own; for two queues make one handler and use it for both",
			"consumer", o.consumer)
	}
}

// LeaseFrom is for authors of an inbox. It returns the record lease under which ctx's handler runs, as the last renewal
// left it, and false where there is none. Of nested leases it returns the innermost.
func LeaseFrom(ctx context.Context) (Lease, bool) {
	rl, ok := recordLeaseFrom(ctx)
	if !ok {
		return Lease{}, false
	}
	return rl.current(), true
}

// StopRenewal is for authors of an inbox. It ends the renewals of the record lease under which ctx's handler runs, before
// a transaction that writes the record: a renewal at the same time would make one of the two fail with a conflict. Call
// it after the user's code and just before the commit. A second call returns what the lease is by then.
//
// If less than least is left of the lease, StopRenewal first renews it once, to the full length. If a renewal is in
// flight, StopRenewal waits for it, also where ctx was cancelled. When StopRenewal returns, nothing of this process reads
// or writes the record until the handler has returned. The lease's end no longer cancels the context: from here on the
// commit's own condition on the owner decides.
//
// The transaction and its retries should end by the returned Until. They should run on a context of their own
// ([context.WithoutCancel] and a timeout), since a host that stops cancels ctx while the commit is still allowed.
//
// Its error matches [sqsonce.ErrLeaseLost] where another owner took over. Any other error says that the lease is over and
// that the store could not tell whose the record is. After an error the transaction must not be sent.
//
// A lease that ends with the process (Message.KillAt) is not renewed, whatever least is.
func StopRenewal(ctx context.Context, least time.Duration) (Lease, error) {
	rl, ok := recordLeaseFrom(ctx)
	if !ok {
		return Lease{}, errNoLease
	}
	return rl.prepareCommit(ctx, least)
}
