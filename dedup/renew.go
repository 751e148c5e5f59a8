package dedup

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sqsonce/sqsonce"
)

// renewals are what a hold knows of its own, under its mu.
type renewals struct {
	timer  *time.Timer        // the next one; nil: none are made
	over   bool               // no more of them
	idle   chan struct{}      // closed: the one in flight has ended; nil: there is none
	giveUp context.CancelFunc // of the one in flight
}

// startRenewing renews the lease at a third of its length until endRenewals. A renewal that fails is tried again sooner;
// one that is refused is the last.
//
// They go on after the handler's context was cancelled, by the host or by the lease's end: a handler that is slow to
// notice still runs, and must keep others away while nobody has taken over.
func (h *hold) startRenewing(ctx context.Context) {
	if !h.renewed {
		return
	}
	first := min(h.length/3, h.left())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(first, func() { h.renewInTime(ctx) })
}

// renewInTime makes one renewal, and has the next one made.
func (h *hold) renewInTime(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	h.mu.Lock()
	if h.over { // while the timer fired, or during the last renewal
		h.mu.Unlock()
		return
	}
	h.idle, h.giveUp = make(chan struct{}), cancel
	h.mu.Unlock()

	sent := time.Now()
	err := h.tryRenewal(ctx)
	next := h.length / 3
	if err != nil {
		next = h.length / 12
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.idle)
	h.idle = nil
	if !errors.Is(err, sqsonce.ErrLeaseLost) {
		h.timer.Reset(max(next-time.Since(sent), h.length/100))
	}
}

// tryRenewal is renew on the timer's goroutine, where a panic of the store would end the process.
func (h *hold) tryRenewal(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &sqsonce.PanicError{Value: v, Stack: debug.Stack()}
			h.once.counts.storeErrors.Add(1)
			h.once.o.Logger.Error("dedup: renewal panicked", "key", h.task.key, "error", err)
		}
	}()
	return h.renew(ctx)
}

// endRenewals ends the renewals, and waits for the one in flight. It can be given up when the handler has returned: what
// it leaves behind is not kept waiting.
func (h *hold) endRenewals(giveUp bool) {
	h.mu.Lock()
	h.over = true
	if h.timer != nil {
		h.timer.Stop()
	}
	idle, cancel := h.idle, h.giveUp
	h.mu.Unlock()
	if idle == nil {
		return
	}
	if giveUp {
		cancel()
	}
	<-idle
}

// renew moves the lease's end, and learns from the answer.
func (h *hold) renew(ctx context.Context) error {
	h.expire()
	l, err := h.renewOnce(ctx)
	switch {
	case err == nil:
		h.extended(l.Until)
	case errors.Is(err, sqsonce.ErrLeaseLost):
		h.lose(err)
	case ctx.Err() == nil: // else the handler has returned and the call was given up
		h.once.counts.storeErrors.Add(1)
		h.once.o.Logger.Warn("dedup: renewal failed", "key", h.task.key, "error", err)
	}
	return err
}

// stopRenewing is StopRenewal.
func (h *hold) stopRenewing(ctx context.Context, least time.Duration) (Lease, error) {
	h.endRenewals(false) // each renewal has a timeout of its own
	h.unwatch()
	if h.isLost() {
		return Lease{}, sqsonce.ErrLeaseLost
	}
	if left := h.left(); left < least && h.renewed || left <= 0 {
		h.measure(time.Now())
		// A renewal that fails while the lease is still ahead changes nothing.
		err := h.renew(context.WithoutCancel(ctx))
		switch {
		case errors.Is(err, sqsonce.ErrLeaseLost):
			return Lease{}, err
		case h.left() > 0:
		case err != nil:
			return Lease{}, fmt.Errorf("dedup: the lease of %s is over: %w", h.task.key, err)
		default:
			return Lease{}, errSlowStore
		}
	}
	return h.current(), nil
}

var errSlowStore = errors.New("dedup: the store answers later than the lease ends")
