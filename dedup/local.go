package dedup

import (
	"context"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// fromMemory answers a delivery without a request, where this process knows enough: the event was completed, or another
// delivery here holds it. Otherwise h has entered, and asks the store.
//
// A delivery that finds another one here waits for it, and looks again when it has ended. Copies of an event often come
// in one batch. Told "in progress" at once, all but the first would come back a lease later and spend a receive each;
// a moment later they are acknowledged by the first one's success, or the next of them takes its turn after its failure.
func (o *Once) fromMemory(ctx context.Context, t task, h *hold) (err error, answered bool) {
	var w wait
	defer w.stop()
	for {
		if r, ok := o.memory.completed(t.key); ok && t.replay == nil {
			o.counts.cacheHits.Add(1)
			return o.duplicate(t, r), true
		}
		holder := o.memory.enter(t.key, h)
		if holder == nil {
			return nil, false
		}
		if o.leaveWaiting(ctx, t) {
			o.counts.cacheHits.Add(1)
			return o.inProgress(holder.until(), holder.ended), true
		}
		select {
		case <-holder.decided:
		case <-ctx.Done():
			return fmt.Errorf("dedup: not started: %w", context.Cause(ctx)), true
		}
		if holder.live() && !w.forEnd(ctx, holder, o.o.Wait) && holder.live() {
			o.counts.cacheHits.Add(1)
			return o.inProgress(holder.until(), nil), true
		}
	}
}

// leaveWaiting reports whether the host waits better than its handler would: without a slot. A call of Do waits by
// itself: its caller may have done something that must not be repeated.
func (o *Once) leaveWaiting(ctx context.Context, t task) bool {
	return t.replay == nil && o.o.Wait >= 0 && !nested(ctx) && settle.Holding(ctx)
}

func nested(ctx context.Context) bool {
	_, nested := ctx.Value(holdContextKey{}).(*hold)
	return nested
}

// wait is how long one delivery waits for others here, for all of them together.
//
// It cannot end in a deadlock. It has a bound; who waits holds no record, so nobody waits for it; and a call from inside
// a guarded handler does not wait at all, since the holder it would wait for may be waiting for that handler, or be it.
// The holder itself does not need what its copies occupy: it has its slot of the host, and its record.
type wait struct {
	over <-chan time.Time
	t    *time.Timer
}

// forEnd reports whether the holder ended while there was time to wait for it.
func (w *wait) forEnd(ctx context.Context, holder *hold, most time.Duration) bool {
	if most < 0 || nested(ctx) {
		return false
	}
	if w.t == nil {
		w.t = time.NewTimer(most)
		w.over = w.t.C
	}
	select {
	case <-holder.ended:
		return true
	case <-w.over:
		return false
	case <-ctx.Done():
		return false
	}
}

func (w *wait) stop() {
	if w.t != nil {
		w.t.Stop()
	}
}
