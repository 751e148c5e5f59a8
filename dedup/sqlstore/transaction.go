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
	// ErrOutcomeUnknown says that it is not known whether a transaction was committed. The next delivery of the event finds
	// out: it is acknowledged if the record is there, and runs the handler if it is not.
	ErrOutcomeUnknown = errors.New("sqlstore: transaction: unknown outcome")
	// ErrTxEnded says that a handler rolled back its transaction and returned nil. Nothing was written. A handler must
	// return an error to roll back, and leave the transaction open.
	ErrTxEnded = errors.New("sqlstore: transaction: the handler has rolled it back and returned nil")
)

var (
	// errOwnCommit says that the row is done by this owner: a commit whose reply was lost has happened.
	errOwnCommit = errors.New("sqlstore: committed before")
	errNoReply   = errors.New("no connection, or no reply, within CallTimeout")
)

// eventTx is a transaction whose effect happens once per event. It begins with a statement that marks the event's row as
// done. A second transaction with the same mark waits for the first one to end. If the database rolls the transaction
// back, it is begun again.
type eventTx struct {
	store *Store
	wait  time.Duration // limit for a connection, for the row's lock and for the commit
	// mark writes the row. It returns errOwnCommit or a refusal (see isRefusal) if the row says that there is nothing to do.
	mark func(context.Context, *sql.Tx) error

	tx  *sql.Tx            // nil: none is open
	end context.CancelFunc // of the transaction's own context
}

// run runs the handler in the open transaction and commits it. A nil error says that the row is done.
func (t *eventTx) run(ctx context.Context, h func(*sql.Tx) error) error {
	dialect := t.store.dialect
	for n := 1; ; n++ {
		err := h(t.tx)
		switch {
		case err == nil:
			if err = t.finish((*sql.Tx).Commit); err == nil {
				return nil
			}
			if c := dialect.classify(err); c != unwritten && c != unknown && !errors.Is(err, sql.ErrTxDone) {
				return explain(dialect, "commit", err)
			}
		case n == maxAttempts, ctx.Err() != nil, !dialect.rolledBack(err):
			return err
		}
		if done, err := t.beginAgain(ctx, n, err); done {
			return err
		}
	}
}

// beginAgain begins the transaction again after cause ended it. It reports done if the row turns out to be done, or if the
// transaction cannot begin.
//
// After a commit without a reply, a read alone would not be enough: the database may still be executing the commit. The
// mark waits for that transaction to end. Then it finds the row done, or marks it again.
func (t *eventTx) beginAgain(ctx context.Context, n int, cause error) (done bool, err error) {
	t.rollback()
	pause(ctx, n)
	// Also after ctx has ended: a host that stops needs to know the outcome of its commit too.
	beginCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.wait)
	defer cancel()
	err = t.begin(beginCtx)
	_, completed := errors.AsType[*dedup.CompletedError](err)
	other, inProgress := errors.AsType[*dedup.InProgressError](err)
	switch {
	case completed || errors.Is(err, errOwnCommit):
		// By our commit, or by another delivery between two attempts.
		return true, nil
	case err == nil && errors.Is(cause, sql.ErrTxDone):
		return true, ErrTxEnded
	case err == nil && (n == maxAttempts || ctx.Err() != nil):
		return true, fmt.Errorf("sqlstore: transaction: rolled back %d times, and given up: %w", n, cause)
	case err == nil:
		return false, nil
	case t.store.dialect.classify(cause) == unknown:
		return true, fmt.Errorf("%w: %w: %w", ErrOutcomeUnknown, cause, err)
	case inProgress:
		return true, sqsonce.RetryAfter(time.Until(other.Until), other)
	default:
		return true, err
	}
}

// begin opens the transaction and marks the row. It waits if another transaction has the row. Others see nothing of this
// before the commit, so a failure here can always be retried.
func (t *eventTx) begin(ctx context.Context) error {
	start := time.Now()
	for n := 1; ; n++ {
		err := t.beginOnce(ctx)
		if err == nil || isRefusal(err) || errors.Is(err, errOwnCommit) {
			return err
		}
		retryable := t.store.mayRetry(err) || errors.Is(err, errContended)
		if !retryable || n == maxAttempts || time.Since(start) >= t.wait || !pause(ctx, n) {
			return explain(t.store.dialect, "begin", err)
		}
	}
}

func (t *eventTx) beginOnce(ctx context.Context) error {
	// Until the row is marked the transaction ends with ctx. After that it goes on to the commit, whatever happens to ctx.
	txCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, cancel)
	timer := time.AfterFunc(t.wait, cancel)
	defer timer.Stop()
	tx, err := t.store.db.BeginTx(txCtx, nil)
	if err != nil {
		defer cancel()
		return t.explain(ctx, txCtx, err)
	}
	t.tx, t.end = tx, cancel
	sent := time.Now()
	if err = t.mark(txCtx, tx); err == nil && detach() && timer.Stop() {
		return nil
	}
	timedOut := txCtx.Err() != nil && ctx.Err() == nil
	err = t.explain(ctx, txCtx, err)
	t.rollback()
	if timedOut && time.Since(sent) > t.wait/2 {
		// The database works, because the transaction began, and the statement got no reply: the row is locked.
		return &dedup.InProgressError{Until: time.Now().Add(t.wait)}
	}
	return err
}

// explain adds why a statement was cancelled, if it was.
func (t *eventTx) explain(ctx, txCtx context.Context, err error) error {
	switch {
	case err != nil && txCtx.Err() == nil:
		return err
	case ctx.Err() != nil:
		return gaveUp(context.Cause(ctx), err)
	default:
		return gaveUp(errNoReply, err)
	}
}

// rollback ends the transaction if one is open. An error says that the connection is gone, and then the database rolls
// back by itself.
func (t *eventTx) rollback() {
	if t.tx != nil {
		_ = t.finish((*sql.Tx).Rollback)
	}
}

func (t *eventTx) finish(f func(*sql.Tx) error) error {
	timer := time.AfterFunc(t.wait, t.end)
	defer timer.Stop()
	err := f(t.tx)
	t.end()
	t.tx = nil
	return err
}
