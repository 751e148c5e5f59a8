package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/values"
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
	e, err := d.Inspect(t.Context(), orderKey)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// An attempt that failed because something is away that every event needs is not counted.
func TestProcessorUnavailable(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		d := newDeferred(t, newStore(t, b))
		p := newProcessor(t, d, func(o *ProcessorOptions) { o.MaxAttempts = 1 })
		e := attempt(t, d, p, func(context.Context, *sqsonce.Message, *sql.Tx) error {
			return fmt.Errorf("payment: %w", sqsonce.Unavailable(errBoom))
		})
		wait := e.DueAt.Sub(e.ReceivedAt)
		if e.Attempts != 0 || e.Parked || !strings.Contains(e.Error, "boom") || wait < 10*time.Second || wait > 10*time.Minute {
			t.Errorf("event: got %+v, want no attempt, the error, and a wait of half a minute", e)
		}
		if jobs := claimOf(t, p, p.suspects); len(jobs) > 0 {
			t.Errorf("suspects: got %v, want none", jobs)
		}
	})
}

// What a handler's outcome does to its event: done, parked, or due again with or without a counted attempt.
func TestProcessorDecidesEachOutcome(t *testing.T) {
	t.Parallel()
	type row struct {
		done, parked bool
		attempts     int
	}
	decided := map[sqsonce.OutcomeKind]row{
		sqsonce.OutcomeDone:        {done: true, attempts: 1},
		sqsonce.OutcomeSkipped:     {done: true, attempts: 1},
		sqsonce.OutcomeFailed:      {attempts: 1},
		sqsonce.OutcomeInProgress:  {attempts: 1},
		sqsonce.OutcomeRejected:    {parked: true, attempts: 1},
		sqsonce.OutcomeLeaseLost:   {attempts: 1},
		sqsonce.OutcomeUnavailable: {},
	}
	for kind, err := range values.Errors {
		want, ok := decided[kind]
		if !ok {
			t.Errorf("outcome %s: decide what a processor does with its event", kind)
		}
		d := newDeferred(t, newStore(t, NewBed(t, "SQLite")))
		e := attempt(t, d, newProcessor(t, d), func(context.Context, *sqsonce.Message, *sql.Tx) error { return err })
		if got := (row{e.Done, e.Parked, e.Attempts}); got != want {
			t.Errorf("outcome %s: got %+v, want %+v", kind, got, want)
		}
	}
}

// What a handler asks for counts more than the reason.
func TestProcessorUnavailableAndAsked(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]error{
		"RetryAfter": sqsonce.RetryAfter(time.Hour, sqsonce.Unavailable(errBoom)),
		"Reject":     sqsonce.Reject(sqsonce.Unavailable(errBoom)),
	} {
		d := newDeferred(t, newStore(t, NewBed(t, "SQLite")))
		e := attempt(t, d, newProcessor(t, d), func(context.Context, *sqsonce.Message, *sql.Tx) error { return asked })
		if e.Attempts != 1 || e.Parked != (name == "Reject") || !e.Parked && e.DueAt.Sub(e.ReceivedAt) < time.Hour {
			t.Errorf("%s: got %+v", name, e)
		}
	}
}

// Nor is an attempt whose transaction could not begin: its handler did not run.
func TestProcessorCannotBegin(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.Dialect == SQLite {
			t.Skip("SQLite locks no rows")
		}
		d := newDeferred(t, newStore(t, b), func(o *dedup.Options) { o.CallTimeout = 500 * time.Millisecond })
		p := newProcessor(t, d, func(o *ProcessorOptions) { o.MaxAttempts = 1 })
		receive(t, d, order(orderID, 1))
		j := claimOf(t, p, p.due)[0]
		tx, err := b.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), b.Dialect.sql("UPDATE {inbox} SET error = 'locked'")); err != nil {
			t.Fatal(err)
		}
		handled := make(chan struct{})
		go func() {
			defer close(handled)
			p.handle(t.Context(), j, func(context.Context, *sqsonce.Message, *sql.Tx) error {
				t.Error("the handler ran")
				return nil
			})
		}()
		time.Sleep(700 * time.Millisecond) // longer than CallTimeout, in which the transaction has to begin
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
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
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.Dialect == SQLite {
			t.Skip("SQLite locks no rows")
		}
		d := newDeferred(t, newStore(t, b), func(o *dedup.Options) { o.CallTimeout = 500 * time.Millisecond })
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
				time.Sleep(1500 * time.Millisecond)
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
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := ownServer(t, name)
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
			if err := <-ended; err != nil {
				t.Errorf("Run: got error %v, want nil after a stop", err)
			}
		})
	}
}
