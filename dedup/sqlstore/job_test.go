package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/values"
	"github.com/sqsonce/sqsonce/limit"
)

// attempt handles the inbox's only event once, and returns what is stored of it then.
func attempt(t *testing.T, d *Deferred, p *Processor, h func(context.Context, *sqsonce.Message, *sql.Tx) error) Entry {
	t.Helper()
	receive(t, d, order(orderID, 1))
	jobs := claimOf(t, p, p.due)
	if len(jobs) != 1 {
		t.Fatalf("claim: got %v, want the event", jobs)
	}
	p.handle(t.Context(), jobs[0], h)
	return must.Get(d.Inspect(t.Context(), orderKey))(t)
}

// counted returns the names of the counters that aren't 0.
func counted(s ProcessorStats) string {
	var names []string
	for field, n := range reflect.ValueOf(s).Fields() {
		if n.Int() > 0 {
			names = append(names, field.Name)
		}
	}
	return strings.Join(names, " ")
}

// What a handler's outcome does to its event: done, parked, or due again with or without a counted attempt. What a handler
// asks for counts more than the reason.
func TestProcessorDecidesEachOutcome(t *testing.T) {
	t.Parallel()
	check := func(name string, err error, want values.Event) {
		t.Helper()
		d := newDeferred(t, newStore(t, NewBed(t, "SQLite")))
		p := newProcessor(t, d)
		e := attempt(t, d, p, func(context.Context, *sqsonce.Message, *sql.Tx) error { return err })
		got := values.Event{Done: e.Done, Parked: e.Parked, Attempts: e.Attempts, Wait: want.Wait, Counted: counted(p.Stats())}
		if got != want || want.Wait > 0 && e.DueAt.Sub(e.ReceivedAt) < want.Wait {
			t.Errorf("outcome %s: got %+v of %+v, want %+v", name, got, e, want)
		}
		if strings.Contains(e.Error, "implicit commit") {
			t.Errorf("outcome %s: got error %q, and nothing was committed", name, e.Error)
		}
		if jobs := claimOf(t, p, p.suspects); len(jobs) > 0 {
			t.Errorf("outcome %s: got suspects %v, want none", name, jobs)
		}
	}
	values.EachOutcome(t, func(kind sqsonce.OutcomeKind, o values.Outcome) {
		if o.ByHosts == "" {
			check(kind.String(), o.Err, o.Event)
		}
	})
	check("unavailable, and when to retry", sqsonce.RetryAfter(time.Hour, sqsonce.Unavailable(errBoom)), values.Event{Attempts: 1, Wait: time.Hour, Counted: "Failed"})
	check("unavailable, and rejected", sqsonce.Reject(sqsonce.Unavailable(errBoom)), values.Event{Parked: true, Attempts: 1, Counted: "Parked"})
}

// A postponed event is rolled back and waits for its time, also longer than what a clock that was ahead may put off, with those behind
// it in its group.
func TestProcessorPostpone(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		receive(t, d, inGroup("g", "1"), inGroup("g", "2"), inGroup("h", "3"))
		p := newProcessor(t, d, func(o *ProcessorOptions) { o.MaxAttempts = 1 })
		for _, j := range claimOf(t, p, p.due) {
			p.handle(t.Context(), j, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				if err := addTen(ctx, tx); err != nil || m.Group == "h" {
					return err
				}
				return sqsonce.Postpone(time.Hour, errBoom)
			})
		}
		must.Do(t, p.rewind(t.Context()))
		if jobs := claimOf(t, p, p.due); len(jobs) > 0 {
			t.Errorf("claimed %v while the head of the group is postponed, want none", ids(jobs))
		}
		expectBalance(t, b.DB, 10)
		if e, err := d.Inspect(t.Context(), "billing#orders|1"); err != nil || e.Attempts != 0 || e.Error != "" {
			t.Errorf("got %+v and error %v, want no attempt and no error", e, err)
		}
		if s := p.Stats(); s.Postponed != 1 || s.Failed != 0 || s.Done != 1 {
			t.Errorf("got %+v, want one postponed, one done", s)
		}
	})
}

// A limiter in the handler keeps a group waiting without an attempt, and no event overtakes another one of its group.
func TestProcessorLimits(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		limits := must.Get(limit.New([]limit.Rule{{Name: "all", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 1, Per: 5 * time.Second, Burst: 1}}}}))(t)
		receive(t, d, inGroup("h", "first"), inGroup("g", "1"), inGroup("g", "2"))
		var mu sync.Mutex
		var ran []string
		begun, done := time.Now(), make(chan struct{})
		p, stop := process(t, d, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			return limits.Do(ctx, m, func(ctx context.Context) error {
				mu.Lock()
				if ran = append(ran, m.ID); len(ran) == 3 {
					close(done)
				}
				mu.Unlock()
				return addTen(ctx, tx)
			})
		}, func(o *ProcessorOptions) { o.MaxAttempts, o.LeaseDuration = 1, time.Minute })
		select {
		case <-done:
		case <-time.After(5 * time.Minute):
			t.Errorf("not done: %+v", p.Stats())
		}
		took := time.Since(begun)
		stop()
		must.Do(t, limits.Close(t.Context()))
		if i, j := slices.Index(ran, "m-1"), slices.Index(ran, "m-2"); i < 0 || j < i || len(ran) != 3 {
			t.Errorf("the events ran in the order %v, want 2 behind 1", ran)
		}
		if took < 10*time.Second {
			t.Errorf("three events took %s, at a rate of one in 5 s", took)
		}
		expectBalance(t, b.DB, 30)
		if s := p.Stats(); s.Postponed == 0 || s.Failed != 0 || s.Parked != 0 || s.Done != 3 {
			t.Errorf("got %+v, want three done, some postponed, none failed", s)
		}
	})
}

// Nor is an attempt whose transaction could not begin: its handler did not run.
func TestProcessorCannotBegin(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.kind.Dialect.OneWriter() {
			t.Skip("one transaction locks the file")
		}
		d := newDeferred(t, newStore(t, b), func(o *dedup.Options) { o.CallTimeout = 3 * time.Second })
		p := newProcessor(t, d, func(o *ProcessorOptions) { o.MaxAttempts = 1 })
		receive(t, d, order(orderID, 1))
		j := claimOf(t, p, p.due)[0]
		tx := must.Get(b.DB.BeginTx(t.Context(), nil))(t)
		defer func() { _ = tx.Rollback() }()
		must.Get(tx.ExecContext(t.Context(), b.Dialect.sql("UPDATE {inbox} SET error = 'locked'")))(t)
		handled := make(chan struct{})
		go func() {
			defer close(handled)
			p.handle(t.Context(), j, func(context.Context, *sqsonce.Message, *sql.Tx) error {
				t.Error("the handler ran")
				return nil
			})
		}()
		time.Sleep(4 * time.Second) // longer than CallTimeout, in which the transaction has to begin
		must.Do(t, tx.Rollback())
		<-handled
		if e, err := d.Inspect(t.Context(), orderKey); err != nil || e.Attempts != 0 || e.Parked || e.Error == "" {
			t.Errorf("event: got %+v and error %v, want no attempt, and the error", e, err)
		}
	})
}

func TestProcessorBackoffPanics(t *testing.T) {
	t.Parallel()
	d := newDeferred(t, newStore(t, NewBed(t, "SQLite")))
	p := newProcessor(t, d, func(o *ProcessorOptions) { o.Backoff = func(int) time.Duration { panic(errBoom) } })
	e := attempt(t, d, p, func(context.Context, *sqsonce.Message, *sql.Tx) error { return errBoom })
	if !e.DueAt.After(e.ReceivedAt) || e.Error != "boom" {
		t.Errorf("event: got %+v, want it due after a wait", e)
	}
	if p.backoff(t.Context(), 1) <= 0 {
		t.Error("no backoff, want the default")
	}
}

// An outcome is stored although the database does not answer for longer than CallTimeout. Otherwise the attempt would look
// like a crash.
func TestProcessorRecordsLate(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.kind.Dialect.OneWriter() {
			t.Skip("one transaction locks the file")
		}
		d := newDeferred(t, newStore(t, b), func(o *dedup.Options) { o.CallTimeout = 3 * time.Second })
		p := newProcessor(t, d, func(o *ProcessorOptions) { o.LeaseDuration = time.Hour })
		var wg sync.WaitGroup
		e := attempt(t, d, p, func(context.Context, *sqsonce.Message, *sql.Tx) error {
			wg.Go(func() {
				// It waits for the handler's transaction to end, and then has the row.
				tx, err := b.DB.BeginTx(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = tx.Rollback() }()
				if _, err := tx.ExecContext(t.Context(), b.Dialect.sql("UPDATE {inbox} SET error = 'locked'")); err != nil {
					t.Error(err)
				}
				time.Sleep(4 * time.Second)
			})
			time.Sleep(200 * time.Millisecond)
			return errBoom
		})
		wg.Wait()
		if e.Error != "boom" || e.DueAt.IsZero() {
			t.Errorf("event: got %+v, want the failure", e)
		}
	})
}

// A processor starts although the database is away, and works when it is back.
func TestProcessorStartsBeforeItsDatabase(t *testing.T) {
	each(t, servers, ownServer, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		receive(t, newDeferred(t, newStore(t, b)), order(orderID, 1))
		b.Server.Kill()
		d := newDeferred(t, otherProcess(t, b), func(o *dedup.Options) { o.CallTimeout = 500 * time.Millisecond })
		p := newProcessor(t, d)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx, book) }()
		select {
		case err := <-ended:
			t.Fatalf("Run: got error %v, want it to wait", err)
		case <-time.After(4 * time.Second): // longer than a check is repeated
		}
		b.Server.Restart(t)
		awaitCounts(t, d, 0, 0)
		expectBalance(t, b.DB, 10)
		cancel()
		must.Do(t, <-ended)
	})
}

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
		// A statement that the database rolled the transaction back for, and that the handler ignored, has undone the mark.
		undone, tx := attemptRow{inbox: d, seq: row.seq, owner: row.owner, until: row.until + 1}, must.Get(b.DB.BeginTx(t.Context(), nil))(t)
		done, err := undone.finish(t.Context(), tx)
		if err := errors.Join(err, tx.Rollback()); done || err != nil {
			t.Errorf("finish without the mark: got %t, %v, want false", done, err)
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
