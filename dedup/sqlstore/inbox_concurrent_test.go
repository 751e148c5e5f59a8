package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// startFirst starts a delivery in a process of its own and returns when its handler has written. The delivery continues
// when the returned function is called: its handler returns that function's argument.
func startFirst(t *testing.T, b *Bed, id string, receive int) (end func(error)) {
	t.Helper()
	writing, outcome, ended := make(chan struct{}), make(chan error), make(chan struct{})
	h := newInbox(t, otherProcess(t, b)).Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		if err := book(ctx, m, tx); err != nil {
			return err
		}
		close(writing)
		return <-outcome
	})
	go func() {
		defer close(ended)
		_ = h(context.Background(), order(id, receive)) // the error is the caller's own
	}()
	<-writing
	return func(err error) {
		outcome <- err
		<-ended
	}
}

// The second of two deliveries waits for the first one's transaction. If that succeeds, the second does not run its
// handler; if it fails, the second runs it. The first inserts the record, or takes the record of an earlier failure.
func TestInboxSecondWaits(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{false, true} {
		for name, outcome := range map[string]error{"and skips": nil, "and runs": errBoom} {
			t.Run(fmt.Sprintf("%s, record %t", name, failed), func(t *testing.T) {
				EachDialect(t, func(t *testing.T, b *Bed) {
					newLedger(t, b)
					if failed {
						startFirst(t, b, orderID, 1)(errBoom)
					}
					end := startFirst(t, b, orderID, 2)
					var runs atomic.Int64
					second := newInbox(t, newStore(t, b)).Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
						runs.Add(1)
						return book(ctx, m, tx)
					})
					done := make(chan error, 1)
					go func() { done <- second(t.Context(), order(orderID, 2)) }()
					select {
					case err := <-done:
						t.Errorf("second delivery: got error %v while the first was running, want it to wait", err)
					case <-time.After(200 * time.Millisecond):
					}
					if n := runs.Load(); n != 0 {
						t.Errorf("the second handler started while the first was running")
					}
					end(outcome)
					must.Do(t, <-done)
					expectBalance(t, b.DB, 10)
					// The first one's failure, which is recorded later, does not undo the second one's success.
					if r, err := newStore(t, b).Inspect(t.Context(), orderKey); err != nil || !r.Completed {
						t.Errorf("record: got %+v and error %v, want it completed", r, err)
					}
					if want := int64(0); outcome != nil && runs.Load() != 1 || outcome == nil && runs.Load() != want {
						t.Errorf("the second handler ran %d times after the first one's outcome %v", runs.Load(), outcome)
					}
				})
			})
		}
	}
}

// A delivery that waits for longer than CallTimeout gets ErrInProgress, and has not run its handler.
func TestInboxWaitHasAnEnd(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.kind.Dialect.OneWriter() {
			// The lock is the file's, and the data source name limits the wait for it.
			b = shortBusy(t, b)
		}
		newLedger(t, b)
		end := startFirst(t, b, orderID, 1)
		short := func(o *dedup.Options) { o.CallTimeout = 3 * time.Second }
		h := newInbox(t, newStore(t, b), short).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error {
			t.Error("the handler ran while the first was running")
			return nil
		})
		start := time.Now()
		err := h(t.Context(), order(orderID, 1))
		if !b.kind.Dialect.OneWriter() && !errors.Is(err, sqsonce.ErrInProgress) || err == nil {
			t.Errorf("second delivery: got error %v, want ErrInProgress", err)
		}
		if took := time.Since(start); took > 9*time.Second {
			t.Errorf("second delivery: took %s, want about CallTimeout", took)
		}
		end(nil)
		must.Do(t, h(t.Context(), order(orderID, 1)))
		expectBalance(t, b.DB, 10)
	})
}

func shortBusy(t *testing.T, b *Bed) *Bed {
	t.Helper()
	short := b.with(t, strings.Replace(b.DSN, "busy_timeout(10000)", "busy_timeout(100)", 1))
	return short
}

// An inbox and a Once of the same consumer share their records.
func TestInboxAndOnce(t *testing.T) {
	eachLedger(t, func(t *testing.T, b *Bed, s *Store) {
		never := func(context.Context, *sqsonce.Message) error {
			t.Error("a completed event ran again under the Once")
			return nil
		}
		once := must.Get(dedup.New(s, "billing"))(t)
		must.Do(t, newInbox(t, s).Handler(book)(t.Context(), order(orderID, 1)))
		must.Do(t, once.Handler(never)(t.Context(), order(orderID, 2)))

		l := mustAcquire(t, s, claim("billing#orders|43", "owner"))
		if err := newInbox(t, s).Handler(book)(t.Context(), order("43", 1)); !errors.Is(err, sqsonce.ErrInProgress) {
			t.Errorf("inbox during a live lease: got error %v, want ErrInProgress", err)
		}
		if r, err := s.Inspect(t.Context(), l.Key); err != nil || r.Owner != "owner" || r.LastError != "" {
			t.Errorf("record: got %+v and error %v, want the owner's, unchanged", r, err)
		}
		mustComplete(t, s, l)
		must.Do(t, newInbox(t, s).Handler(book)(t.Context(), order("43", 1)))

		l = mustAcquire(t, s, claim("billing#orders|44", "crashed"))
		age(t, b, l.Key, 2*time.Hour)
		i := newInbox(t, s)
		if err := i.Handler(book)(t.Context(), order("44", 2)); err != nil || i.Stats().Takeovers != 1 {
			t.Errorf("inbox after a crashed Once: got error %v and %+v, want one takeover", err, i.Stats())
		}
		if err := s.Complete(t.Context(), l, dedup.Result{}); !errors.Is(err, sqsonce.ErrLeaseLost) {
			t.Errorf("Complete by the crashed: got error %v, want ErrLeaseLost", err)
		}
		expectBalance(t, b.DB, 20)
	})
}

// Handlers that lock two rows in opposite orders end in deadlocks. The database's victim runs again, and every event has
// its effect once.
func TestInboxDeadlock(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		exec(t, b.DB, "CREATE TABLE pair (id INT PRIMARY KEY, n BIGINT NOT NULL)")
		exec(t, b.DB, "INSERT INTO pair (id, n) VALUES (1, 0), (2, 0)")
		var wg sync.WaitGroup
		var runs atomic.Int64
		const each = 5
		for w := range 2 {
			h := newInbox(t, otherProcess(t, b)).Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				runs.Add(1)
				for _, row := range []int{1 + w, 2 - w} {
					if _, err := tx.ExecContext(ctx, b.Dialect.sql("UPDATE pair SET n = n + 1 WHERE id = ?"), row); err != nil {
						return fmt.Errorf("row %d: %w", row, err)
					}
					time.Sleep(10 * time.Millisecond)
				}
				return nil
			})
			wg.Go(func() {
				for n := range each {
					if err := h(t.Context(), order(fmt.Sprint(w, "-", n), 1)); err != nil {
						t.Errorf("consumer %d, delivery %d: got error %v, want nil", w, n, err)
					}
				}
			})
		}
		wg.Wait()
		var one, two int64
		must.Do(t, b.DB.QueryRowContext(t.Context(), "SELECT MIN(n), MAX(n) FROM pair").Scan(&one, &two))
		if one != 2*each || two != 2*each {
			t.Errorf("rows: got %d and %d, want %d", one, two, 2*each)
		}
		t.Logf("%d runs for %d events", runs.Load(), 2*each)
	})
}

// At the level SERIALIZABLE the database refuses one of two handlers that read and then write the same row, in its
// statement or in its commit. The handler runs again.
func TestInboxSerializationFailure(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "PostgreSQL")
	newLedger(t, b)
	exec(t, b.DB, "ALTER DATABASE "+b.Name+" SET default_transaction_isolation = 'serializable'")
	var wg sync.WaitGroup
	var runs atomic.Int64
	const consumers, each = 5, 4
	for w := range consumers {
		h := newInbox(t, otherProcess(t, b)).Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			runs.Add(1)
			var n int64
			if err := tx.QueryRowContext(ctx, "SELECT balance FROM ledger WHERE account = 'alice'").Scan(&n); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond)
			_, err := tx.ExecContext(ctx, "UPDATE ledger SET balance = $1 WHERE account = 'alice'", n+10)
			return err
		})
		wg.Go(func() {
			for n := range each {
				redeliver(t, h, fmt.Sprint(w, "-", n))
			}
		})
	}
	wg.Wait()
	expectBalance(t, b.DB, consumers*each*10)
	if n := runs.Load(); n <= consumers*each {
		t.Errorf("the handler ran %d times for %d events: nothing was refused, and nothing tested", n, consumers*each)
	}
}
