package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

func receive(t testing.TB, d *Deferred, ms ...*sqsonce.Message) {
	t.Helper()
	must.Do(t, errors.Join(d.ReceiveBatch(t.Context(), ms)...))
}

// inGroup is a message of a FIFO queue.
func inGroup(group, id string) *sqsonce.Message {
	m := order(id, 1)
	m.Group, m.Sequence = group, "1"
	return m
}

// The next event of a group waits while the oldest one runs and while it backs off; other events do not wait. On a standard
// queue a group has no order.
func TestProcessorGroupWaitsForItsHead(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		tenant := order("tenant-2", 1)
		tenant.Group = "g"
		receive(t, d, inGroup("g", "head"), inGroup("g", "next"), inGroup("h", "other"), tenant)
		p := newProcessor(t, d)
		claimed := func() (ids []string) {
			jobs := must.Get(p.claim(t.Context(), 10))(t)
			for _, j := range jobs {
				ids = append(ids, strings.TrimPrefix(j.message.ID, "m-"))
			}
			return ids
		}
		if got := claimed(); !slices.Equal(got, []string{"head", "other", "tenant-2"}) {
			t.Errorf("first claim: got %v, want the head of each group and the event without an order", got)
		}
		if got := claimed(); got != nil {
			t.Errorf("while the head is leased: got %v, want nothing", got)
		}
		set := func(text string) {
			exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET owner = '', lease_until = 0, "+text+" WHERE message_id = 'm-head'"))
		}
		set("due_at = {now} + 60000")
		if got := claimed(); got != nil {
			t.Errorf("while the head backs off: got %v, want nothing", got)
		}
		for n := range 12 { // more than a claim takes
			receive(t, d, inGroup("g", fmt.Sprint("behind-", n)))
		}
		receive(t, d, order("after", 1))
		if got := claimed(); !slices.Equal(got, []string{"after"}) {
			t.Errorf("behind a long group: got %v, want the event without an order", got)
		}
		set("status = 'PARKED'")
		if got := claimed(); !slices.Equal(got, []string{"next"}) {
			t.Errorf("after the head was parked: got %v, want the next", got)
		}
	})
}

// A handler runs for longer than its event's lease. The row is locked, so neither the event nor the next one of its group
// is claimed.
func TestProcessorHandlerOutlivesItsLease(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.kind.Dialect.OneWriter() {
			b = shortBusy(t, b)
		}
		newLedger(t, b)
		d := newDeferred(t, newStore(t, b))
		receive(t, d, inGroup("g", "1"), inGroup("g", "2"))
		var runs atomic.Int64
		begun, release, first, otherDone := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		slow := func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			switch m.ID {
			case "m-1":
				if runs.Add(1) > 1 {
					return nil
				}
				close(begun)
				<-release
				close(first)
			case "m-2":
				select {
				case <-first:
				default:
					t.Error("the next event of the group ran before its head had ended")
				}
			default:
				close(otherDone)
			}
			_, err := tx.ExecContext(ctx, b.Dialect.sql("INSERT INTO ledger (account, balance) VALUES (?, 1)"), m.ID)
			return err
		}
		for range 2 {
			process(t, newDeferred(t, otherProcess(t, b)), slow)
		}
		<-begun
		time.Sleep(1200 * time.Millisecond) // longer than the lease, by the database's clock
		if !b.kind.Dialect.OneWriter() {
			receive(t, d, order("3", 1))
			await(t, "another event waits for the locked one", otherDone)
		}
		close(release)
		awaitCounts(t, d, 0, 0)
		if n := runs.Load(); n != 1 {
			t.Errorf("the handler of the head ran %d times, want 1", n)
		}
	})
}

// A processor that lost its lease runs no handler, and commits nothing.
func TestProcessorFence(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		receive(t, d, order(orderID, 1))
		slow := newProcessor(t, newDeferred(t, otherProcess(t, b)))
		stale, err := slow.claim(t.Context(), 1)
		if err != nil || len(stale) != 1 {
			t.Fatalf("claim: got %v and error %v, want the event", stale, err)
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET lease_until = 1"))
		quickly := newProcessor(t, d)
		fresh, err := quickly.claimSuspect(t.Context())
		if err != nil || len(fresh) != 1 {
			t.Fatalf("claim after the lease: got %v and error %v, want the event", fresh, err)
		}
		if fresh[0].message.ReceiveCount != 2 {
			t.Errorf("attempt: got %d, want 2: the first one counts", fresh[0].message.ReceiveCount)
		}
		never := func(context.Context, *sqsonce.Message, *sql.Tx) error {
			t.Error("a handler ran without a lease")
			return errBoom
		}
		slow.handle(t.Context(), stale[0], never)
		slow.fail(t.Context(), stale[0], errBoom) // a failure of it changes nothing
		if e, err := d.Inspect(t.Context(), orderKey); err != nil || e.Error != "" {
			t.Errorf("event: got %+v and error %v, want it unchanged", e, err)
		}
		quickly.handle(t.Context(), fresh[0], book)
		slow.handle(t.Context(), stale[0], never)
		expectBalance(t, b.DB, 10)
		if s := slow.Stats(); s.Lost != 2 || s.Done != 0 {
			t.Errorf("stats of the slow processor: got %+v, want 2 lost", s)
		}
	})
}

// An attempt is counted and committed before its transaction begins. So attempts that never end are counted. After one
// that others had shared their process with, the event has attempts alone; the last of these parks it.
func TestProcessorCountsCrashes(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		for _, test := range []struct{ concurrency, most, runs int }{{10, 3, 3}, {10, 1, 2}, {1, 1, 1}} {
			d := newDeferred(t, newStore(t, b))
			id := fmt.Sprintf("%d-%d", test.concurrency, test.most)
			receive(t, d, order(id, 1))
			options := func(o *ProcessorOptions) { o.Concurrency, o.MaxAttempts = test.concurrency, test.most }
			p := newProcessor(t, d, options)
			runs := 0
			for claim := p.due; runs <= test.runs; claim = p.suspects {
				jobs := claimOf(t, p, claim)
				if len(jobs) != 1 {
					t.Fatalf("claim after %d crashes: got %v, want the event", runs, jobs)
				}
				died := false
				p.handle(t.Context(), jobs[0], func(context.Context, *sqsonce.Message, *sql.Tx) error {
					died = true
					panic("stands for a death: its outcome is removed below")
				})
				if !died {
					break
				}
				runs++
				exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET status = 'PENDING', error = '', due_at = 0, lease_until = 1 WHERE status <> 'DONE' AND message_id = ?"), "m-"+id)
			}
			if runs != test.runs {
				t.Errorf("%+v: the handler ran %d times", test, runs)
			}
			e, err := d.Inspect(t.Context(), "billing#orders|"+id)
			if err != nil || !e.Parked || !strings.Contains(e.Error, "without an outcome") {
				t.Errorf("event: got %+v and error %v, want it parked with the reason", e, err)
			}
			if s := p.Stats(); s.Crashed != 1 {
				t.Errorf("stats: got %+v, want 1 crashed", s)
			}
		}
	})
}

// What a handler returns decides what happens to its event.
func TestProcessorOutcomes(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		var calls atomic.Int64
		outcomes := map[string]func() error{
			"m-error":  func() error { return errBoom },
			"m-panic":  func() error { panic(errBoom) },
			"m-goexit": func() error { runtime.Goexit(); return nil },
			"m-reject": func() error { return sqsonce.Reject(errBoom) },
			"m-retry": func() error {
				if calls.Add(1) > 5 {
					return nil
				}
				return sqsonce.RetryAfter(0, errBoom)
			},
		}
		for id := range outcomes {
			receive(t, d, order(strings.TrimPrefix(id, "m-"), 1))
		}
		var attempts atomic.Int64
		p, stop := process(t, d, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			if err := addTen(ctx, tx); err != nil {
				return err
			}
			return outcomes[m.ID]()
		}, func(o *ProcessorOptions) {
			o.MaxAttempts, o.LeaseDuration = 6, time.Minute
			o.Backoff = func(attempt int) time.Duration {
				attempts.Add(int64(attempt))
				return 0
			}
		})
		awaitCounts(t, d, 0, 4)
		stop()
		expectBalance(t, b.DB, 10)
		all := must.Get(d.Parked(t.Context(), 10))(t)
		for _, e := range all {
			want, text := 6, "boom"
			switch e.Message.ID {
			case "m-reject":
				want = 1
			case "m-goexit":
				text = "Goexit"
			}
			if e.Attempts != want || !strings.Contains(e.Error, text) {
				t.Errorf("%s: got %d attempts and %q, want %d and %q", e.Message.ID, e.Attempts, e.Error, want, text)
			}
		}
		if n := attempts.Load(); n != 3*(1+2+3+4+5) {
			t.Errorf("Backoff: the attempts add up to %d, want those of the three events without a delay of their own", n)
		}
		if s := p.Stats(); s.Done != 1 || s.Parked != 4 || s.Failed != 3*5+5 {
			t.Errorf("stats: got %+v, want 1 done, 4 parked, 20 failed", s)
		}
	})
}

// A stop lets handlers end. Those that take too long are cancelled, and their attempts are not counted.
func TestProcessorStops(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		receive(t, d, order(orderID, 1))
		started, end := make(chan struct{}), make(chan struct{})
		_, stop := process(t, d, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			close(started)
			<-end
			return book(ctx, m, tx)
		})
		<-started
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		select {
		case <-stopped:
			t.Error("Run returned while a handler was running")
		case <-time.After(50 * time.Millisecond):
		}
		close(end)
		<-stopped
		expectBalance(t, b.DB, 10)

		receive(t, d, order("43", 1))
		begun := make(chan struct{})
		_, stop = process(t, d, func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
			close(begun)
			if err := addTen(ctx, tx); err != nil {
				return err
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, sqsonce.ErrShutdown) {
				t.Errorf("cause: got %v, want ErrShutdown", cause)
			}
			return ctx.Err()
		}, func(o *ProcessorOptions) { o.StopTimeout = 20 * time.Millisecond })
		<-begun
		stop()
		expectBalance(t, b.DB, 10)
		if e, err := d.Inspect(t.Context(), "billing#orders|43"); err != nil || e.Attempts != 0 || e.Error != "" {
			t.Errorf("event: got %+v and error %v, want it as if it had not been tried", e, err)
		}
		if jobs := claimOf(t, newProcessor(t, d), newProcessor(t, d).suspects); len(jobs) > 0 {
			t.Errorf("suspects: got %v, want none: the attempt has an outcome", jobs)
		}
		process(t, d, book)
		awaitCounts(t, d, 0, 0)
		expectBalance(t, b.DB, 20)
	})
}

// A login that is refused for a while, as between two passwords, does not end Run.
func TestProcessorLoginRefused(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "PostgreSQL")
	login := "w" + b.Name
	create, drop := b.kind.Writer(login, b.Name)
	for _, text := range append(create, "ALTER ROLE "+login+" NOLOGIN") {
		exec(t, b.DB, text)
	}
	t.Cleanup(func() {
		for _, text := range drop {
			_, _ = b.DB.Exec(text)
		}
	})
	db := open(t, b.Driver, replaceUser(b.DSN, b.kind.Login, login))
	receive(t, newDeferred(t, newStore(t, b)), order("1", 1))
	done := make(chan struct{}, 10)
	process(t, newDeferred(t, storeOn(t, db, b.Dialect)), func(context.Context, *sqsonce.Message, *sql.Tx) error { done <- struct{}{}; return nil })
	time.Sleep(300 * time.Millisecond)
	exec(t, b.DB, "ALTER ROLE "+login+" LOGIN")
	await(t, "the event does not run", done)
}

// The numbers are those of the comments of Options and ProcessorOptions, which docs/stores.md is compared with.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, dialect := range sqldb.Dialects() {
		concurrency := 10
		if dialect.OneWriter() {
			concurrency = 1
		}
		s := must.Get(New(sql.OpenDB(refusing{}), Dialect(dialect)))(t)
		p := must.Get(NewProcessor(newDeferred(t, s)))(t)
		got := []any{s.base.Timeout(), p.o.Concurrency, p.o.Poll, p.o.LeaseDuration, p.o.MaxAttempts, p.o.StopTimeout}
		want := []any{5 * time.Second, concurrency, time.Second, 30 * time.Second, 10, 25 * time.Second}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", dialect, got, want)
		}
	}
}

func TestNewProcessorChecksItsOptions(t *testing.T) {
	t.Parallel()
	_, err := NewProcessor(nil, func(o *ProcessorOptions) { o.Concurrency, o.Poll, o.LeaseDuration = -1, -1, 1 })
	if got := fmt.Sprint(testaws.Fields(err)); !strings.Contains(got, "inbox") || strings.Count(got, "Options.") != 3 {
		t.Errorf("NewProcessor: got error %v, want one that names four fields", err)
	}
	p := newProcessor(t, newDeferred(t, newStore(t, NewBed(t, "SQLite"))))
	if err := p.Run(t.Context(), nil); !hasField(err, "handler") {
		t.Errorf("Run(nil): got error %v, want one that names the handler", err)
	}
}
