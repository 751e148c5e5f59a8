package ops

import (
	"context"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

// remembered is how long a consumer may remember that an event was done: dedup's minute, and what clocks differ.
const remembered = 65 * time.Second

// awaitReopened waits until no consumer can remember that an event was done whose record has been reopened, and looks at these records
// again, as long as one of them was reopened meanwhile.
func (r *run) awaitReopened(ctx context.Context, batch []*Message) {
	awaited := map[*Message]int64{} // a fence, once: the store's clock may be ahead
	for !r.o.DryRun && ctx.Err() == nil {
		var reopened []*Message
		var wait time.Duration
		for _, m := range batch {
			if left := m.remembered(); left > 0 && awaited[m] != m.Record.Fence {
				reopened, wait = append(reopened, m), max(wait, left)
				awaited[m] = m.Record.Fence
			}
		}
		if len(reopened) == 0 {
			return
		}
		host.Wait(ctx, wait)
		r.d.join(ctx, reopened)
	}
}

// remembered returns how long a consumer may yet remember that the event was done, where its record has been reopened: the fence
// of that is its time in ms. A clock that is behind the store's makes it no longer.
func (m *Message) remembered() time.Duration {
	if !m.reopened() {
		return 0
	}
	return max(0, min(time.Until(time.UnixMilli(m.Record.Fence).Add(remembered)), remembered))
}

// reopened reports whether an operator has released the event's record, and no delivery has acquired it since.
func (m *Message) reopened() bool {
	return m.State == dedup.StateReleased && strings.HasPrefix(m.Record.Owner, dedup.OperatorPrefix)
}
