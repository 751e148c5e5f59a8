package attack

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/proof/process"
)

// The points at which a host's process kills itself.
const (
	beforeAcquire, afterAcquire   = "before an acquire", "after an acquire"
	beforeRenew, afterRenew       = "before a renewal", "after a renewal"
	beforeComplete, afterComplete = "before a complete", "after a complete"
	beforeRelease, afterRelease   = "before a release", "after a release"
	handlerStart, handlerEnd      = "at the handler's start", "at the handler's end"
	deliveryEnd                   = "at the delivery's end"
)

var (
	// Of two neighbours one is soon met: most handlers are not renewed, and few fail.
	storePoints = []string{
		afterComplete, beforeRelease, handlerStart, afterRelease, beforeComplete, beforeRenew, afterAcquire, afterRenew,
		handlerEnd, beforeAcquire, deliveryEnd,
	}
	inboxPoints = []string{deliveryEnd, handlerEnd, handlerStart} // the commit is between the handler's end and the delivery's
)

// doomed is a host's store. It reports completes, whose delivery may not get to report its success.
type doomed struct {
	dedup.Store
	report func(note)
}

func (d doomed) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	process.At(beforeAcquire)
	g, err := d.Store.Acquire(ctx, c)
	if g.Verdict == dedup.VerdictGranted {
		process.At(afterAcquire)
	}
	return g, err
}

func (d doomed) Renew(ctx context.Context, l dedup.Lease, by time.Duration) (dedup.Lease, error) {
	process.At(beforeRenew)
	defer process.At(afterRenew)
	return d.Store.Renew(ctx, l, by)
}

func (d doomed) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	process.At(beforeComplete)
	err := d.Store.Complete(ctx, l, r)
	if at, ok := ctx.Value(deliveryKey{}).(delivery); ok && err == nil {
		d.report(note{What: completed, Event: at.Event, Delivery: at.Number, At: time.Now().UnixNano()})
		process.At(afterComplete)
	}
	return err
}

func (d doomed) Release(ctx context.Context, l dedup.Lease, cause error) error {
	process.At(beforeRelease)
	defer process.At(afterRelease)
	return d.Store.Release(ctx, l, cause)
}
