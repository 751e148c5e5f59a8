package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
)

// keep renews the lease at a third of its length until the handler has returned, or until stopRenewing. A renewal that
// fails is tried again sooner; one that is refused ends the renewals.
//
// It goes on after the handler's context was cancelled, by the host or by the lease's end: a handler that is slow to
// notice still runs, and must keep others away while nobody has taken over.
func (h *hold) keep(ctx context.Context, returned <-chan struct{}) {
	defer close(h.stopped)
	if !h.renewed {
		return
	}
	t := time.NewTimer(min(h.length/3, h.left()))
	defer t.Stop()
	for {
		select {
		case <-returned:
			return
		case <-h.stop:
			return
		case <-t.C:
		}
		sent := time.Now()
		next := h.length / 3
		switch err := h.renewWhile(ctx, returned); {
		case errors.Is(err, sqsonce.ErrLeaseLost):
			return
		case err != nil:
			next = h.length / 12
		}
		t.Reset(max(next-time.Since(sent), h.length/100))
	}
}

// renewWhile gives the call up when the handler has returned: what it leaves behind is not kept waiting.
func (h *hold) renewWhile(ctx context.Context, returned <-chan struct{}) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		select {
		case <-returned:
			cancel()
		case <-ctx.Done():
		}
	}()
	return h.renew(ctx)
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
	h.stopOnce.Do(func() { close(h.stop) })
	<-h.stopped // each renewal has a timeout of its own
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
