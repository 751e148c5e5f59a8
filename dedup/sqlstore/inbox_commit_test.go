package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// A commit without an answer: the delivery finds out what became of it, also where the server has it still to do, and the
// message is acknowledged with one effect.
func TestInboxLostCommit(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		for at, c := range map[string]struct {
			cut  func(*proxy, string)
			runs int64
		}{
			"before the server has it": {(*proxy).loseStatement, 2},
			"after the server did it":  {(*proxy).loseAnswer, 1},
			"before the server did it": {(*proxy).loseAnswerFirst, 1},
		} {
			t.Run(name+"/"+at, func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, name)
				newLedger(t, b)
				p, away := throughProxy(t, b)
				var runs atomic.Int64
				counted := func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
					if runs.Add(1) == 1 {
						c.cut(p, commitOf(b))
					}
					return book(ctx, m, tx)
				}
				i := newInbox(t, newStore(t, away))
				if err := i.Handler(counted)(t.Context(), order(orderID, 1)); err != nil {
					t.Errorf("delivery: got error %v, want nil", err)
				}
				expectBalance(t, b.DB, 10)
				if runs.Load() != c.runs || p.count() != 1 {
					t.Errorf("the handler ran %d times and %d commits were cut, want %d and 1", runs.Load(), p.count(), c.runs)
				}
				if err := newInbox(t, newStore(t, b)).Handler(book)(t.Context(), order(orderID, 2)); err != nil {
					t.Errorf("redelivery: got error %v, want nil", err)
				}
				expectBalance(t, b.DB, 10)

				// And the same for a processor.
				runs.Store(0)
				d := newDeferred(t, newStore(t, away))
				receive(t, d, order("43", 1))
				pr, stop := process(t, d, counted)
				awaitCounts(t, newDeferred(t, newStore(t, b)), 0, 0)
				stop()
				expectBalance(t, b.DB, 20)
				if s := pr.Stats(); runs.Load() != c.runs || s.Done != 1 || s.Failed != 0 {
					t.Errorf("the handler ran %d times, stats %+v; want %d and one done", runs.Load(), s, c.runs)
				}
			})
		}
	}
}

// Where nobody can be asked the outcome is unknown, and the message is not acknowledged.
func TestInboxUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBed(t, name)
			newLedger(t, b)
			p, away := throughProxy(t, b)
			h := newInbox(t, newStore(t, away), func(o *dedup.Options) { o.CallTimeout = 1e9 }).Handler(
				func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
					p.loseAnswer(commitOf(b))
					_ = p.listen.Close() // and no way back
					return book(ctx, m, tx)
				})
			if err := h(t.Context(), order(orderID, 1)); !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("delivery: got error %v, want ErrOutcomeUnknown", err)
			}
			if err := newInbox(t, newStore(t, b)).Handler(book)(t.Context(), order(orderID, 2)); err != nil {
				t.Errorf("redelivery: got error %v, want nil", err)
			}
			expectBalance(t, b.DB, 10)
		})
	}
}

// kill -9 of the database while a handler's transaction is open: nothing of it is there afterwards, the delivery fails,
// and the next one has its effect.
func TestDatabaseKilled(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := ownServer(t, name)
			newLedger(t, b)
			killIn := func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				if err := book(ctx, m, tx); err != nil {
					return err
				}
				b.Server.Kill()
				// PostgreSQL's process for this connection outlives the server's by a moment, and could still commit.
				eventually(t, "the connection is dead", func() bool {
					_, err := tx.ExecContext(ctx, "SELECT 1")
					return err != nil
				})
				return nil
			}
			i := newInbox(t, newStore(t, b))
			if err := i.Handler(killIn)(t.Context(), order(orderID, 1)); err == nil {
				t.Error("delivery: got nil, want an error: its transaction died with the server")
			}
			b.Server.Restart(t)
			// The pool has connections to the server that was killed.
			eventually(t, "the database answers", func() bool { return b.DB.PingContext(t.Context()) == nil })
			expectBalance(t, b.DB, 0)
			redeliver(t, i.Handler(book), orderID)
			expectBalance(t, b.DB, 10)

			d := newDeferred(t, newStore(t, b))
			receive(t, d, order("43", 1))
			var runs atomic.Int64
			restarted := make(chan error, 1)
			process(t, d, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				if runs.Add(1) > 1 {
					return book(ctx, m, tx)
				}
				defer func() { go func() { restarted <- b.Server.Relaunch(context.Background()) }() }()
				return killIn(ctx, m, tx)
			})
			if err := <-restarted; err != nil {
				t.Fatal(err)
			}
			awaitCounts(t, d, 0, 0)
			expectBalance(t, b.DB, 20)
			if n := runs.Load(); n < 2 {
				t.Errorf("the handler ran %d times, want a second time after the kill", n)
			}
		})
	}
}

// commitOf is the word that a driver sends.
func commitOf(b *Bed) string {
	if b.Dialect == PostgreSQL {
		return "commit"
	}
	return "COMMIT"
}
