package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

var (
	// ErrOutcomeUnknown says that a transaction may have been committed. The next delivery of the event finds out: it is
	// acknowledged where the record is there, and runs the handler where it is not.
	ErrOutcomeUnknown = errors.New("sqlstore: transaction: outcome unknown")
	// ErrTxEnded says that a handler rolled back the transaction that it was given and returned nil. Nothing was written.
	ErrTxEnded = errors.New("sqlstore: transaction: the handler has ended it, and the record is not there")
)

var (
	// errOurs says that a processor's row is done, and by us: a commit whose answer was lost had happened.
	errOurs     = errors.New("sqlstore: committed before")
	errNoAnswer = errors.New("no connection, or no answer, within CallTimeout")
)

// guarded is a transaction that has its effect once: it begins with a statement that marks a row as done, and that others
// who come with the same statement wait for. Where the database ended the transaction it is begun anew.
type guarded struct {
	store *Store
	wait  time.Duration // for a connection, for the row's lock, for the commit
	// mark writes the row. Its error is errOurs, or an answer (see isAnswer), where the row says that there is nothing to do.
	mark func(context.Context, *sql.Tx) error

	tx  *sql.Tx            // nil: none is open
	end context.CancelFunc // of the transaction's own context
}

// run runs the handler in the open transaction and commits it. A nil error says that the row is done.
func (g *guarded) run(ctx context.Context, h func(*sql.Tx) error) error {
	dialect := g.store.dialect
	for n := 1; ; n++ {
		err := h(g.tx)
		switch {
		case err == nil:
			if err = g.finish((*sql.Tx).Commit); err == nil {
				return nil
			}
			if c := dialect.classify(err); c != unwritten && c != unknown && !errors.Is(err, sql.ErrTxDone) {
				return explain(dialect, "commit", err)
			}
		case n == maxAttempts, ctx.Err() != nil, !dialect.retryable(err):
			return err
		}
		if done, err := g.anew(ctx, n, err); done {
			return err
		}
	}
}

// anew begins the transaction again after cause ended it. It is done where that shows that the row is, or where it cannot
// be begun.
//
// A commit without an answer is never looked up by a read alone: the database might still be at it. The mark waits for
// that transaction's end, and then finds the row done or does it again.
func (g *guarded) anew(ctx context.Context, n int, cause error) (done bool, err error) {
	g.rollback()
	pause(ctx, n)
	// Not cut off: what became of a commit is worth knowing also to a host that stops.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.wait)
	defer cancel()
	err = g.begin(asking)
	_, completed := errors.AsType[*dedup.CompletedError](err)
	held, inProgress := errors.AsType[*dedup.InProgressError](err)
	switch {
	case completed || errors.Is(err, errOurs):
		// By our commit, or by another delivery between two tries of ours.
		return true, nil
	case err == nil && errors.Is(cause, sql.ErrTxDone):
		return true, ErrTxEnded
	case err == nil && (n == maxAttempts || ctx.Err() != nil):
		return true, fmt.Errorf("sqlstore: transaction: rolled back, and not begun again after %d times: %w", n, cause)
	case err == nil:
		return false, nil
	case g.store.dialect.classify(cause) == unknown:
		return true, fmt.Errorf("%w: %w: %w", ErrOutcomeUnknown, cause, err)
	case inProgress:
		return true, sqsonce.RetryAfter(time.Until(held.Until), held)
	default:
		return true, err
	}
}

// begin opens the transaction and marks the row, and waits where another transaction has it. Nothing of this is there for
// anybody else before the commit, so whatever fails here can be tried again.
func (g *guarded) begin(ctx context.Context) error {
	start := time.Now()
	for n := 1; ; n++ {
		err := g.beginOnce(ctx)
		if err == nil || isAnswer(err) || errors.Is(err, errOurs) {
			return err
		}
		mends := g.store.again(err) || errors.Is(err, errContended)
		if !mends || n == maxAttempts || time.Since(start) >= g.wait || !pause(ctx, n) {
			return explain(g.store.dialect, "begin", err)
		}
	}
}

func (g *guarded) beginOnce(ctx context.Context) error {
	// The transaction goes on to the commit whatever becomes of ctx. Until the row is marked it does not.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	leave := context.AfterFunc(ctx, cancel)
	late := time.AfterFunc(g.wait, cancel)
	defer late.Stop()
	tx, err := g.store.db.BeginTx(own, nil)
	if err != nil {
		defer cancel()
		return g.explain(ctx, own, err)
	}
	g.tx, g.end = tx, cancel
	sent := time.Now()
	if err = g.mark(own, tx); err == nil && leave() && late.Stop() {
		return nil
	}
	cutOff := own.Err() != nil && ctx.Err() == nil
	err = g.explain(ctx, own, err)
	g.rollback()
	if cutOff && time.Since(sent) > g.wait/2 {
		// The database is there, since a transaction was begun, and a statement had no answer: the row is locked.
		return &dedup.InProgressError{Until: time.Now().Add(g.wait)}
	}
	return err
}

// explain says what cut a statement off, if something did.
func (g *guarded) explain(ctx, own context.Context, err error) error {
	switch {
	case err != nil && own.Err() == nil:
		return err
	case ctx.Err() != nil:
		return because(context.Cause(ctx), err)
	default:
		return because(errNoAnswer, err)
	}
}

// rollback ends the transaction where one is open. An error says that the connection is gone, and then the database does
// it by itself.
func (g *guarded) rollback() {
	if g.tx != nil {
		_ = g.finish((*sql.Tx).Rollback)
	}
}

func (g *guarded) finish(f func(*sql.Tx) error) error {
	late := time.AfterFunc(g.wait, g.end)
	defer late.Stop()
	err := f(g.tx)
	g.end()
	g.tx = nil
	return err
}
