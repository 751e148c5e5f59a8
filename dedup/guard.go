package dedup

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Guard is [Once.Handler] for an inbox: f runs under the record's lease, and its own transaction may complete the
// record.
//
// f's context carries the lease: [LeaseFrom], [FenceFrom] and [StopRenewal] find it there. It is cancelled with cause
// [sqsonce.ErrLeaseLost] when a renewal is refused or the lease's end passes unproven.
//
// What f returns decides about the record:
//
//   - completed and nil: f's transaction completed the record, under the condition that l.Owner still owns it. Guard
//     writes nothing and remembers the key as completed.
//   - completed and an error: as before, and the error is returned; the next delivery is acknowledged without running.
//   - not completed and nil: Guard completes the record, as Handler does.
//   - not completed and an error: Guard releases the record with the error and returns it. f returns the error also
//     where the outcome of its transaction is unknown; the transaction must therefore be refused after a release.
//
// Under the policy RunAnyway f is called with the zero Lease while the store is down, and nothing of the record may be
// written.
func (o *Once) Guard(ctx context.Context, m *sqsonce.Message, f func(ctx context.Context, l Lease) (completed bool, err error)) error {
	t, err := o.task(m)
	if err != nil {
		return err
	}
	t.run = func(ctx context.Context, l Lease) (Result, bool, error) {
		completed, err := f(ctx, l)
		return Result{Validation: l.Validation}, completed, err
	}
	return o.do(ctx, t)
}

// LeaseFrom returns the lease under which ctx's handler runs, as the last renewal left it, and false where there is
// none. Of several nested ones it is the innermost.
func LeaseFrom(ctx context.Context) (Lease, bool) {
	h, ok := ctx.Value(holdContextKey{}).(*hold)
	if !ok {
		return Lease{}, false
	}
	return h.current(), true
}

// FenceFrom returns the fencing number of the lease under which ctx's handler runs, and false where there is none. It
// is greater than that of every earlier holder of the same event's record while the record is retained.
//
// Compare it only on items that are keyed by the same event: numbers of different events are not comparable. For an
// entity that several events touch use the entity's own version.
func FenceFrom(ctx context.Context) (fence int64, ok bool) {
	l, ok := LeaseFrom(ctx)
	return l.Fence, ok
}

// StopRenewal ends the renewals of the lease under which ctx's handler runs, for a transaction that writes the record
// itself: a renewal that met it would make one of the two fail with a conflict. Call it after the user's code and just
// before the commit; a second call returns what the lease is by then.
//
// Where less than least is left it first renews once, to the full length. It then waits for a renewal in flight, also
// where ctx has ended: when it returns, nothing of this process reads or writes the record until the handler has
// returned. The context is no longer cancelled at the lease's end: from here on the commit's own condition on the owner
// decides. The transaction and its retries should end by the returned Until, on a context of their own
// ([context.WithoutCancel] and a timeout), since ctx may be cancelled by a host that stops while the commit is in order.
//
// It returns [sqsonce.ErrLeaseLost] where another owner took over: the transaction must not be sent. Any other error
// says that the lease is over and that the store could not say whose it is: the transaction must not be sent either.
//
// A lease that ends with the process (Message.KillAt) is not renewed, whatever least is.
func StopRenewal(ctx context.Context, least time.Duration) (Lease, error) {
	h, ok := ctx.Value(holdContextKey{}).(*hold)
	if !ok {
		return Lease{}, errNoLease
	}
	return h.stopRenewing(ctx, least)
}

var errNoLease = errors.New("dedup: the context carries no lease")
