package dedup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce"
)

const (
	firstBackoff = 50 * time.Millisecond
	mostBackoff  = 2 * time.Second
)

// completeRecord records the success of a handler. It is tried at least once, and again while the lease lasts: longer
// makes no sense, since another owner may then run the handler anyway.
//
// The record is never released here, whatever the store answers. The event has had its effect: a release would let the
// next delivery repeat it at once, while the lease still gives a late or lost answer time to be confirmed.
func (o *Once) completeRecord(ctx context.Context, h *hold, r Result) error {
	l := h.current()
	var err error
	for backoff := firstBackoff; ; backoff = min(2*backoff, mostBackoff) {
		if err = o.tryComplete(ctx, l, r); err == nil {
			o.memory.complete(l.Key, r.Validation)
			return nil
		}
		if errors.Is(err, sqsonce.ErrLeaseLost) {
			h.lose(err)
			return sqsonce.ErrLeaseLost
		}
		o.counts.storeErrors.Add(1)
		pause := backoff/2 + rand.N(backoff/2)
		if _, unusable := errors.AsType[*sqsonce.FieldError](err); unusable || pause >= h.left() {
			break
		}
		time.Sleep(pause) // not cut short by ctx: the effect has happened
	}

	o.counts.completeFailed.Add(1)
	if o.o.OnCompleteFailed == Acknowledge {
		o.o.Logger.ErrorContext(ctx, "dedup: handler succeeded, record not completed, message acknowledged", "key", l.Key, "error", err)
		return nil
	}
	return fmt.Errorf("dedup: handler succeeded, complete %s: %w", l.Key, err)
}

func (o *Once) tryComplete(ctx context.Context, l Lease, r Result) error {
	ctx, cancel := o.own(ctx)
	defer cancel()
	return o.store.Complete(ctx, l, r)
}

// own returns a context for what must be written although the delivery's context has ended.
func (o *Once) own(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), o.o.CallTimeout)
}
