package sqlstore

import (
	"fmt"
	"testing"
	"time"
)

// The server's clock was an hour ahead, and is right again. What was received, failed or was claimed meanwhile waits no hour, and no age
// is negative. A delay that a handler asked for stays.
func TestClockOfTheServerStepsBack(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		d := newDeferred(t, newStore(t, b))
		const hour = 3_600_000
		for id, set := range map[string]string{
			"received": fmt.Sprintf("received_at = received_at + %d, due_at = due_at + %[1]d", hour),
			"failed":   fmt.Sprintf("attempts = 1, received_at = received_at + %d, due_at = due_at + %[1]d + 600000", hour),
			"claimed":  fmt.Sprintf("attempts = 1, received_at = received_at + %d, due_at = 0, owner = 'died', lease_until = {now} + %[1]d + 30000", hour),
			"asked":    fmt.Sprintf("attempts = 1, due_at = due_at + 2 * %d", hour),
		} {
			receive(t, d, order(id, 1))
			exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET "+set+" WHERE event_id = 'orders|"+id+"'"))
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET received_at = received_at + 7200000"))
		if c, err := d.Count(t.Context()); err != nil || c.Oldest < 0 {
			t.Errorf("got %+v and error %v, want no negative age", c, err)
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET received_at = received_at - 7200000"))
		process(t, d, book, func(o *ProcessorOptions) { o.LeaseDuration = 30 * time.Second })
		awaitCounts(t, d, 1, 0)
		expectBalance(t, b.DB, 30)
	})
}
