package sqlstore

import (
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

// A row that was marked and that an implicit commit has left is leased until the claim's lease ends, and is marked once.
func TestAttemptMark(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		receive(t, d, order(orderID, 1))
		p := newProcessor(t, d, func(o *ProcessorOptions) { o.LeaseDuration = time.Hour })
		jobs, err := p.claim(t.Context(), 1)
		if err != nil || len(jobs) != 1 {
			t.Fatalf("claim: got %d jobs and error %v, want 1", len(jobs), err)
		}
		row := attemptRow{inbox: d, seq: jobs[0].seq, owner: jobs[0].owner}
		_, _, claimed, err := row.read(t.Context(), b.DB)
		if err != nil {
			t.Fatal(err)
		}
		mark := func() error {
			tx := must.Get(b.DB.BeginTx(t.Context(), nil))(t)
			return errors.Join(row.mark(t.Context(), tx), tx.Commit())
		}
		must.Do(t, mark())
		// The mark differs from the claim's lease, and does not shorten it.
		if row.until <= claimed {
			t.Errorf("mark: got %d, want more than the claim's %d", row.until, claimed)
		}
		if marked, err := row.marked(t.Context(), b.DB); err != nil || !marked {
			t.Errorf("marked: got %t, %v, want true", marked, err)
		}
		if err := mark(); !errors.Is(err, errMarked) {
			t.Errorf("mark again: got error %v, want errMarked", err)
		}
		if jobs, err := p.claim(t.Context(), 1); err != nil || len(jobs) != 0 {
			t.Errorf("claim during the lease: got %d jobs and error %v, want none", len(jobs), err)
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET lease_until = 0, status = 'DONE'"))
		if err := mark(); !errors.Is(err, errOwnCommit) {
			t.Errorf("mark of a row that is done: got error %v, want errOwnCommit", err)
		}
	})
}
