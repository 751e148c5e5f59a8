package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/internal/opserr"
)

// keep extends the hold of what is held at half of it, until the function that it returns is called, which waits for a call that is
// under way.
func (h *held) keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(h.hold / 4)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				h.extend(ctx)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// extend extends what has half of its hold left, or less. What could not be extended is tried again in a quarter of the hold.
func (h *held) extend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.hold/4)
	defer cancel()
	now := wallClock()
	var due []*heldMessage
	for _, m := range h.proven(h.handles()) {
		if h.untilOf(m).Sub(now) <= h.hold/2 {
			due = append(due, m)
		}
	}
	done, _, err := h.inBatches(ctx, due, 1, h.setVisibility(h.hold))
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.notExtended = err
	}
	for _, m := range done {
		if !m.until.IsZero() {
			m.until = now.Add(h.hold)
		}
	}
}

func (h *held) untilOf(m *heldMessage) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return m.until
}

// has reports whether the message is certainly hidden for this process.
func (h *held) has(id string) bool { return len(h.proven(h.handles(id))) > 0 }

// over returns the error for a message that the process does not have.
func (h *held) over() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.notExtended == nil || errors.Is(h.notExtended, errNotCarriedOut) {
		return opserr.ErrHoldOver
	}
	return fmt.Errorf("%w: %w", opserr.ErrHoldOver, h.d.failed("ChangeMessageVisibility", h.notExtended))
}

// forget drops handles that are used up.
func (h *held) forget(messages []*heldMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range messages {
		m.until = time.Time{}
	}
}
