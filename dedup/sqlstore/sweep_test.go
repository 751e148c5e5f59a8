package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// fill inserts n completed records whose retention ended between one and n seconds ago.
func fill(t testing.TB, b *Bed, n int) {
	t.Helper()
	const most = 500
	for from := 0; from < n; from += most {
		rows := min(most, n-from)
		text := "INSERT INTO {records} (id, status, owner, fence, lease_until, expires_at, receive_count) VALUES " +
			strings.TrimSuffix(strings.Repeat("(?, 'COMPLETED', 'o', 1, 1, {now} - ?, 1), ", rows), ", ")
		var args []any
		for i := range rows {
			args = append(args, fmt.Sprintf("old-%d", from+i), (from+i+1)*1000)
		}
		exec(t, b.DB, b.Dialect.sql(text), args...)
	}
}

func count(t testing.TB, b *Bed, from string) int {
	t.Helper()
	var n int
	must.Do(t, b.DB.QueryRowContext(t.Context(), b.Dialect.sql("SELECT COUNT(*) FROM "+from)).Scan(&n))
	return n
}

func TestSweep(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		live := claim("live", "a")
		live.Retention = time.Millisecond
		mustAcquire(t, s, live)
		mustComplete(t, s, mustAcquire(t, s, claim("completed", "a")))
		mustAcquire(t, s, claim("crashed", "a"))
		age(t, b, "crashed", 2*time.Hour) // its lease is over, its retention is not
		mustAcquire(t, s, claim("forgotten", "a"))
		age(t, b, "forgotten", 25*time.Hour)
		fill(t, b, 25)
		exec(t, b.DB, b.Dialect.sql("INSERT INTO {inbox} (id, consumer, event_id, payload, attributes, received_at, status, expires_at) VALUES "+
			"('done', 'c', 'e', 'x', '{}', 0, 'DONE', 1), ('retained', 'c', 'e', 'x', '{}', 0, 'DONE', {now} + 60000), "+
			"('pending', 'c', 'e', 'x', '{}', 0, 'PENDING', 1), ('parked', 'c', 'e', 'x', '{}', 0, 'PARKED', 1)"))
		n, err := s.sweepAt(t.Context(), pace{10, -1})
		if n != 27 || err != nil {
			t.Errorf("Sweep: got %d, %v, want 27 rows", n, err)
		}
		if n := count(t, b, "{inbox}"); n != 3 {
			t.Errorf("%d rows in the inbox, want the 3 that are not done or are retained", n)
		}
		if n := count(t, b, "{records}"); n != 3 {
			t.Errorf("%d records remain, want 3", n)
		}
		for key, want := range map[string]string{"live": "in progress", "completed": "completed", "forgotten": "acquired"} {
			if _, err := granted.Lease(s.Acquire(t.Context(), claim(key, "b"))); resultOf(err) != want {
				t.Errorf("%s: got %s, want %s", key, resultOf(err), want)
			}
		}
		if l := mustAcquire(t, s, claim("crashed", "b")); !l.Takeover {
			t.Error("the crashed owner's record is gone")
		}
	})
}

// One statement deletes no more than a batch, the oldest first.
func TestSweepIsBounded(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		fill(t, b, 30)
		s := newStore(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// The pause after the first batch outlasts the test.
		done := make(chan error, 1)
		go func() {
			_, err := s.sweepAt(ctx, pace{10, time.Hour})
			done <- err
		}()
		for count(t, b, "{records}") == 30 {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
		// It came in the pause, or before the reply to the first statement.
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Sweep that was cancelled: got error %v, want the cancellation", err)
		}
		if n := count(t, b, "{records}"); n != 20 {
			t.Errorf("%d records remain, want 20", n)
		}
		if oldest := count(t, b, "{records} WHERE id IN ('old-20', 'old-29')"); oldest != 0 {
			t.Error("newer records were deleted before the oldest")
		}
	})
}

// Processes that sweep at once share the work, and none fails. Deliveries continue meanwhile.
func TestSweepsAtOnce(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		const rows, sweepers = 2000, 4
		fill(t, b, rows)
		s := newStore(t, b)
		var (
			wg   sync.WaitGroup
			n    [sweepers]int64
			errs [sweepers + 1]error
		)
		for i := range sweepers {
			wg.Go(func() {
				n[i], errs[i] = s.sweepAt(t.Context(), pace{50, -1})
			})
		}
		wg.Go(func() {
			for i := range 50 {
				l, err := granted.Lease(s.Acquire(t.Context(), claim(fmt.Sprintf("new-%d", i), "a")))
				errs[sweepers] = errors.Join(errs[sweepers], err, s.Complete(t.Context(), l, dedup.Result{}))
			}
		})
		wg.Wait()
		must.Do(t, errors.Join(errs[:]...))
		if sum := n[0] + n[1] + n[2] + n[3]; sum != rows {
			t.Errorf("%d rows deleted, want %d", sum, rows)
		}
		if n := count(t, b, "{records}"); n != 50 {
			t.Errorf("%d records remain, want the 50 new ones", n)
		}
	})
}

// A sweep uses the index: it does not read a large table whose rows are mostly retained.
func TestSweepUsesTheIndex(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		fill(t, b, 3000)
		exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET expires_at = {now} + 1000000 WHERE id <> 'old-7'"))
		exec(t, b.DB, strings.Replace(b.kind.Analyze, "*", "sqsonce_records", 1))
		plan := b.kind.Plan(t, b.DB, newStatements(sqldb.Dialect(b.Dialect)).sweepRecords, 1000)
		if !strings.Contains(plan, "sqsonce_records_expires_at") || strings.Contains(plan, "seq scan") {
			t.Errorf("the plan does not use the index:\n%s", plan)
		}
	})
}

func TestSweepEvery(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		var log bytes.Buffer
		s := newStore(t, b, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.SweepEvery(ctx, 20*time.Millisecond) }()
		for range 3 { // rounds
			fill(t, b, 5)
			for count(t, b, "{records}") > 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		cancel()
		must.Do(t, <-done)
		if log.Len() > 0 {
			t.Errorf("logged %s", &log)
		}
		exec(t, b.DB, b.Dialect.sql("DROP TABLE {records}"))
		if err := s.SweepEvery(t.Context(), time.Hour); !errors.Is(err, sqldb.ErrNoTable) {
			t.Errorf("SweepEvery without a table: got error %v, want ErrNoTable", err)
		}
	})
}

func TestSweepArguments(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	if err := s.SweepEvery(t.Context(), 0); !hasField(err, "interval") {
		t.Errorf("got error %v, want a *sqsonce.OptionError of interval", err)
	}
}
