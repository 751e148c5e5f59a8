package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// The statements of the release in which an inbox's transaction began with a record that was completed already, and a
// deferred inbox's with a row that was done. Processes of that release work on the same tables while a deployment replaces
// them. The schema is the same.
const (
	oldInsert = "INSERT INTO {records} (id, status, owner, fence, lease_until, expires_at, attempts, validation)" +
		" VALUES (?, 'COMPLETED', 'old', {now}, 0, {now} + 1000000, 1, '') {ignore}"
	oldTake = "UPDATE {records} SET owner = 'old', fence = {greatest}(fence + 1, {now}), expires_at = {now} + 1000000, attempts = 1," +
		" validation = '', result = NULL, lease_until = 0, status = 'COMPLETED'" +
		" WHERE id = ? AND fence = ? AND lease_until = ? AND " + isFree
	oldMarkDone = "UPDATE {inbox} SET error = '', lease_until = 0, expires_at = {greatest}(expires_at, {now} + 1000000)," +
		" status = 'DONE' WHERE seq = ? AND owner = ? AND status = 'PENDING'"
)

// oldInbox begins a transaction as a process of the old release does, and books. It reports false if the record refused.
func oldInbox(t *testing.T, b *Bed, s *Store) (tx *sql.Tx, runs bool) {
	t.Helper()
	ctx := t.Context()
	tx, err := b.DB.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	runs, err = sqldb.Dialect(b.Dialect).Write(ctx, tx, b.Dialect.sql(oldInsert), orderKey)
	if err == nil && !runs {
		var r record
		if r, err = s.find(ctx, tx, orderKey); err == nil && r.stateFor(claim(orderKey, "old")) == free {
			runs, err = sqldb.Dialect(b.Dialect).Write(ctx, tx, b.Dialect.sql(oldTake), orderKey, r.fence, r.until)
		}
	}
	if err == nil && runs {
		err = addTen(ctx, tx)
	} else {
		err = errors.Join(err, tx.Rollback())
	}
	if err != nil {
		t.Fatal(err)
	}
	return tx, runs
}

// A delivery in each of two processes, the first of the old release: the second waits for it, and runs only if it failed.
func TestInboxAfterOldProcess(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		s := newStore(t, b)
		for n, commits := range []bool{false, true} {
			old, runs := oldInbox(t, b, s)
			if !runs {
				t.Fatal("the old process was refused")
			}
			done := make(chan error, 1)
			go func() { done <- newInbox(t, otherProcess(t, b)).Handler(book)(t.Context(), order(orderID, 2)) }()
			select {
			case err := <-done:
				t.Errorf("new process: got error %v while the old one was running, want it to wait", err)
			case <-time.After(100 * time.Millisecond):
			}
			end := old.Rollback
			if commits {
				end = old.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("new process: got error %v, want nil", err)
			}
			expectBalance(t, b.DB, int64(n+1)*10)
			exec(t, b.DB, b.Dialect.sql("DELETE FROM {records}"))
		}
	})
}

// The first delivery is in a process of this release. One of the old release runs the event only if the first failed, or
// committed implicitly and its lease is over. Then the first is refused.
func TestInboxBeforeOldProcess(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		s := newStore(t, b)
		i := newInbox(t, s)
		h := i.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
			if err := bookAndCommit(ctx, tx, implicitCommit{text: "COMMIT"}); err != nil {
				return err
			}
			if _, runs := oldInbox(t, b, s); runs {
				t.Error("old process: runs during the lease of an implicit commit")
			}
			age(t, b, orderKey, time.Hour)
			old, runs := oldInbox(t, b, s)
			if !runs {
				t.Error("old process: refused after the lease")
			}
			return old.Commit()
		})
		if err := h(t.Context(), order(orderID, 1)); !errors.Is(err, ErrTxEnded) {
			t.Errorf("new process: got error %v, want ErrTxEnded", err)
		}
		expectBalance(t, b.DB, 20)
		if r, err := s.Inspect(t.Context(), orderKey); err != nil || !r.Completed || r.Owner != "old" {
			t.Errorf("record: got %+v and error %v, want it completed by the old process", r, err)
		}

		exec(t, b.DB, b.Dialect.sql("DELETE FROM {records}"))
		failing := newInbox(t, otherProcess(t, b)).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { return errBoom })
		if err := failing(t.Context(), order(orderID, 1)); !errors.Is(err, errBoom) {
			t.Fatal(err)
		}
		old, runs := oldInbox(t, b, s)
		if !runs {
			t.Error("old process: refused after a failure")
		}
		if err := old.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := newInbox(t, otherProcess(t, b)).Handler(book)(t.Context(), order(orderID, 2)); err != nil {
			t.Fatal(err)
		}
		if _, runs := oldInbox(t, b, s); runs {
			t.Error("old process: runs a completed event")
		}
		expectBalance(t, b.DB, 30)
	})
}

// A row that this release has marked and an implicit commit has left is leased for a processor of the old release too.
func TestAttemptWithOldProcess(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		d := newDeferred(t, newStore(t, b))
		receive(t, d, order(orderID, 1))
		p := newProcessor(t, d, func(o *ProcessorOptions) { o.Lease = time.Hour })
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
			tx, err := b.DB.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return errors.Join(row.mark(t.Context(), tx), tx.Commit())
		}
		if err := mark(); err != nil {
			t.Fatal(err)
		}
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
		// The old release's first statement, by the same claim: the row is done, and nothing of this release changes it.
		if done, err := sqldb.Dialect(b.Dialect).Write(t.Context(), b.DB, b.Dialect.sql(oldMarkDone), row.seq, row.owner); err != nil || !done {
			t.Errorf("old statement: got %t, %v, want a row", done, err)
		}
		if err := mark(); !errors.Is(err, errOwnCommit) {
			t.Errorf("mark of a row that is done: got error %v, want errOwnCommit", err)
		}
	})
}
