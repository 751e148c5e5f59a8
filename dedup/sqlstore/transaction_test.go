package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// What the row says is an answer and is not asked for again; what the database could not do is.
func TestGuardedBegin(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	_, busy := s.db.Exec("not SQL")
	if busy == nil {
		t.Fatal("the database took what is not SQL")
	}
	for name, c := range map[string]struct {
		err   error
		marks int
	}{
		"completed":   {&dedup.CompletedError{}, 1},
		"in progress": {&dedup.InProgressError{}, 1},
		"lost":        {sqsonce.ErrLeaseLost, 1},
		"ours":        {errOwnCommit, 1},
		"not SQL":     {busy, 1},
		"contended":   {errContended, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marks := 0
			g := eventTx{store: s, wait: 5 * time.Second, mark: func(context.Context, *sql.Tx) error {
				if marks++; marks == 3 {
					return nil
				}
				return c.err
			}}
			err := g.begin(t.Context())
			if c.marks == 3 && err != nil || c.marks == 1 && !errors.Is(err, c.err) {
				t.Errorf("begin: got error %v after %v", err, c.err)
			}
			g.rollback()
			if marks != c.marks {
				t.Errorf("the row was asked %d times, want %d", marks, c.marks)
			}
		})
	}
}

// A transaction's statements are cut off by their own limit, not by the caller's end alone.
func TestGuardedLeavesWithItsCaller(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	ctx, cancel := context.WithCancelCause(t.Context())
	g := eventTx{store: s, wait: 5 * time.Second, mark: func(own context.Context, _ *sql.Tx) error {
		cancel(errBoom)
		<-own.Done()
		return own.Err()
	}}
	if err := g.begin(ctx); !errors.Is(err, errBoom) {
		t.Errorf("begin: got error %v, want the cause", err)
	}
	if g.tx != nil {
		t.Error("the transaction stays open")
	}
}

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

// commitOf is the word that a driver sends.
func commitOf(b *Bed) string {
	if b.Dialect == PostgreSQL {
		return "commit"
	}
	return "COMMIT"
}
