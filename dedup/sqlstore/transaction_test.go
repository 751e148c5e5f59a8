package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// fakeRow is an [eventRow] without a row.
type fakeRow struct {
	onMark   func(context.Context) error
	onFinish error
}

func (r fakeRow) mark(ctx context.Context, _ *sql.Tx) error                  { return r.onMark(ctx) }
func (r fakeRow) finish(context.Context, *sql.Tx) (bool, error)              { return true, r.onFinish }
func (fakeRow) marked(context.Context, sqldb.Queryer) (marked bool, _ error) { return false, nil }

// A refusal by the row is not retried. A failure of the database is.
func TestEventTxBegin(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	_, busy := s.db.Exec("not SQL")
	if busy == nil {
		t.Fatal("the database executed what is not SQL")
	}
	for name, c := range map[string]struct {
		err   error
		marks int
	}{
		"completed":   {&doneError{}, 1},
		"in progress": {&dedup.InProgressError{}, 1},
		"lost":        {sqsonce.ErrLeaseLost, 1},
		"ours":        {errOwnCommit, 1},
		"marked":      {errMarked, 1},
		"not SQL":     {busy, 1},
		"contended":   {errContended, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marks := 0
			tx := eventTx{store: s, wait: 5 * time.Second, row: fakeRow{onMark: func(context.Context) error {
				if marks++; marks == 3 {
					return nil
				}
				return c.err
			}}}
			err := tx.begin(t.Context())
			if c.marks == 3 && err != nil || c.marks == 1 && !errors.Is(err, c.err) {
				t.Errorf("begin: got error %v after %v", err, c.err)
			}
			tx.rollback()
			if marks != c.marks {
				t.Errorf("the row was marked %d times, want %d", marks, c.marks)
			}
		})
	}
}

// A row that could be marked each time, and not be written after the handler, is a failure of its event: at once where the
// database refuses it, at its second time where there is no answer, and at its last time where a repetition may help.
func TestEventTxGivesUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		runs int
	}{
		"denied":    {sqliteError(3), 1},
		"no answer": {errors.New("broken pipe"), 2},
		"disk full": {sqliteError(13), 2},
		"busy":      {sqliteError(5), sqldb.MaxAttempts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			tx := eventTx{store: newStore(t, NewBed(t, "SQLite")), wait: 5 * time.Second, row: fakeRow{onFinish: c.err, onMark: func(context.Context) error { return nil }}}
			must.Do(t, tx.begin(t.Context()))
			err := tx.run(t.Context(), func(context.Context, *sql.Tx) error { runs++; return nil })
			if err = tx.abort(t.Context(), err); kind(err) != "the rest" || !errors.Is(err, c.err) || runs != c.runs {
				t.Errorf("run: got error %v after %d runs, want a failure of the event after %d", err, runs, c.runs)
			}
		})
	}
}

// Until the row is marked, the end of the caller's context cancels the transaction.
func TestEventTxCancelled(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	ctx, cancel := context.WithCancelCause(t.Context())
	tx := eventTx{store: s, wait: 5 * time.Second, row: fakeRow{onMark: func(own context.Context) error {
		cancel(errBoom)
		<-own.Done()
		return own.Err()
	}}}
	if err := tx.begin(ctx); !errors.Is(err, errBoom) {
		t.Errorf("begin: got error %v, want the cause", err)
	}
	if tx.tx != nil {
		t.Error("the transaction stays open")
	}
}

// A commit's reply is lost. The delivery finds out whether the commit happened, also if the server executes it later, and
// the message is acknowledged with one effect.
func TestInboxLostCommit(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		for at, c := range map[string]struct {
			cut  func(*proxy, string)
			runs int64
		}{
			"before the server receives it": {(*proxy).loseStatement, 2},
			"after the server executed it":  {(*proxy).loseReply, 1},
			"before the server executes it": {(*proxy).loseReplyEarly, 1},
		} {
			t.Run(name+"/"+at, func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, name)
				newLedger(t, b)
				p, proxied := throughProxy(t, b)
				var runs atomic.Int64
				counted := func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
					if runs.Add(1) == 1 {
						c.cut(p, b.kind.Commit)
					}
					return book(ctx, m, tx)
				}
				i := newInbox(t, newStore(t, proxied))
				must.Do(t, i.Handler(counted)(t.Context(), order(orderID, 1)))
				expectBalance(t, b.DB, 10)
				if runs.Load() != c.runs || p.count() != 1 {
					t.Errorf("the handler ran %d times and %d commits were cut, want %d and 1", runs.Load(), p.count(), c.runs)
				}
				must.Do(t, newInbox(t, newStore(t, b)).Handler(book)(t.Context(), order(orderID, 2)))
				expectBalance(t, b.DB, 10)

				// The same for a processor.
				runs.Store(0)
				d := newDeferred(t, newStore(t, proxied))
				receive(t, d, order("43", 1))
				// It looks once: the commit of another look must not be the one that is cut.
				pr, stop := process(t, d, counted, func(o *ProcessorOptions) { o.Poll = time.Hour })
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

// If the database cannot be reached after a lost reply, the outcome is unknown and the message is not acknowledged.
func TestInboxUnknownOutcome(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		p, proxied := throughProxy(t, b)
		h := newInbox(t, newStore(t, proxied), func(o *dedup.Options) { o.CallTimeout = 3e9 }).Handler(
			func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				p.loseReply(b.kind.Commit)
				_ = p.listen.Close() // no new connection
				return book(ctx, m, tx)
			})
		if err := h(t.Context(), order(orderID, 1)); !errors.Is(err, dedup.ErrCommitUnknown) {
			t.Errorf("delivery: got error %v, want ErrCommitUnknown", err)
		} else if kind(err) != "unavailable" {
			t.Errorf("delivery: got error %v, want it unavailable", err)
		}
		must.Do(t, newInbox(t, newStore(t, b)).Handler(book)(t.Context(), order(orderID, 2)))
		expectBalance(t, b.DB, 10)
	})
}
