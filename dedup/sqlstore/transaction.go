package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/question"
)

var (
	// ErrImplicitCommit says that the handler failed after its transaction had been committed without its *sql.Tx. On
	// MySQL and MariaDB many statements do so: definitions such as CREATE TABLE, START TRANSACTION, the end of SET
	// autocommit = 0, a procedure with a COMMIT of its own. The earlier writes are in the database, and the event isn't
	// done. Its next attempt repeats them. Move such statements out of the handler.
	ErrImplicitCommit = errors.New("sqlstore: transaction: implicit commit: a statement of the handler committed its writes" +
		" before the handler failed, and the next run repeats them; move the statement out of the handler")
	// ErrTxEnded says that a handler returned nil and its transaction could not be committed. The handler rolled it back,
	// or ignored an error by which the database rolled it back (such as a deadlock on MySQL), or turned autocommit off. Or
	// one of its statements committed implicitly and another delivery has the event since. The event isn't done. A handler
	// must return the errors of its statements, leave the transaction open and the session as it was.
	ErrTxEnded = errors.New("sqlstore: transaction: not committed, although the handler returned nil: the handler rolled it back," +
		" ignored an error that rolled it back, turned autocommit off, or committed implicitly and lost the event")
)

var (
	// errOwnCommit says that the row is done by this owner: a commit whose reply was lost has happened.
	errOwnCommit = errors.New("sqlstore: committed before")
	// errMarked says that the row has the mark of an earlier transaction of this owner, which must have been committed.
	errMarked  = errors.New("sqlstore: marked before")
	errNoReply = errors.New("no connection or no reply within CallTimeout")
)

// doneError says that the event was completed before: a record's answer to the mark of an inbox's transaction.
type doneError struct{ result dedup.Result }

func (*doneError) Error() string { return "sqlstore: event completed before" }

// eventRow is the row of the event that a transaction handles, and the delivery or attempt that handles it.
//
// The transaction begins with a mark and ends with a finish that needs the mark. Other transactions don't see the mark,
// unless a statement of the handler commits the transaction. Then the event isn't done yet, and the lease that is part of
// the mark keeps other deliveries out for CallTimeout. If the database rolls the transaction back and the handler goes on,
// each of its further statements is committed by itself, and so would be a finish that didn't need the mark.
type eventRow interface {
	// mark writes the mark. It returns errOwnCommit, errMarked or a refusal (see isRefusal) if the row says that the handler
	// must not run. It waits while another transaction has the row.
	mark(ctx context.Context, tx *sql.Tx) error
	// finish writes that the event is done. If the row doesn't have the mark, finish doesn't write and reports false.
	finish(ctx context.Context, tx *sql.Tx) (bool, error)
	// marked reports whether the row, as q sees it, has the mark.
	marked(ctx context.Context, q sqldb.Queryer) (bool, error)
}

// eventTx is a transaction whose effect happens once per event. If the database rolls it back, it begins again.
type eventTx struct {
	store *Store
	wait  time.Duration // limit for a connection, for the row's lock and for the commit
	row   eventRow

	tx  *sql.Tx            // nil: none is open
	end context.CancelFunc // of the transaction's own context
	ran bool               // a handler has run in the transaction
}

// stage is how far a run of the transaction came before it failed.
type stage int

const (
	handling   stage = iota // the handler failed
	finishing               // the row was not written as done, and no commit was sent
	committing              // the commit failed
)

// run runs the handler in the open transaction and commits it. A nil error says that the row is done.
//
// The transaction has marked the row before the handler ran. If the database then refuses the end of it, the handler is the
// reason: it may have changed the role. That is a failure of the event. So is a connection that ends twice, or a statement
// that exceeds its timeout twice, unless the database doesn't answer afterwards: see abort.
func (t *eventTx) run(ctx context.Context, h func(context.Context, *sql.Tx) error) error {
	for n, ends := 1, 0; ; n++ {
		at, err := t.runOnce(ctx, h)
		again := t.mayRepeat(at, err)
		if again && at != committing && !t.store.dialect.IsConflict(err) {
			ends++
			again = ends == 1
		}
		switch {
		case err == nil, errors.Is(err, ErrTxEnded):
			return err
		case at == handling && (!again || n == sqldb.MaxAttempts || ctx.Err() != nil):
			return err
		case !again:
			return question.FromStore(fmt.Errorf("sqlstore: commit: %w", err))
		}
		if done, err := t.beginAgain(ctx, n, at, err); done {
			return question.FromStore(err)
		}
	}
}

func (t *eventTx) runOnce(ctx context.Context, h func(context.Context, *sql.Tx) error) (stage, error) {
	if err := t.handle(ctx, h); err != nil {
		return handling, err
	}
	return t.commit(ctx)
}

// mayRepeat reports whether a transaction that failed may be run again. An error without an answer counts only if the
// transaction's own statements returned it: a handler may return one of another service.
func (t *eventTx) mayRepeat(at stage, err error) bool {
	return t.store.dialect.RolledBack(err) || at != handling && err != nil && t.store.dialect.Classify(err) == sqldb.Unknown
}

// handle runs the handler. A handler that was cancelled because of the pool has not failed by itself.
func (t *eventTx) handle(ctx context.Context, h func(context.Context, *sql.Tx) error) error {
	t.ran = true
	handlerCtx, stop := t.store.pool.watch(ctx, t.wait)
	defer stop()
	err := h(handlerCtx, t.tx)
	if err != nil && handlerCtx.Err() != nil && ctx.Err() == nil {
		return question.FromStore(fmt.Errorf("%w: handler returned: %w", context.Cause(handlerCtx), err))
	}
	return err
}

// commit writes that the event is done, and commits. The end of the caller's context does not cancel it.
func (t *eventTx) commit(ctx context.Context) (stage, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.wait)
	defer cancel()
	finished, err := t.row.finish(ctx, t.tx)
	if errors.Is(err, sql.ErrTxDone) {
		// The handler has ended its *sql.Tx. If it committed, everything is in the database but this.
		t.rollback()
		if t.tx, err = t.store.pool.begin(ctx); err != nil {
			return finishing, t.store.explain("commit", err) // no answer to what the handler did
		}
		t.end = cancel
		finished, err = t.row.finish(ctx, t.tx)
	}
	switch {
	case err != nil && t.store.dialect.Classify(err) == sqldb.Aborted:
		return finishing, fmt.Errorf("%w: %w", ErrTxEnded, err)
	case err != nil:
		return finishing, err
	case !finished:
		return finishing, ErrTxEnded
	}
	return committing, t.close((*sql.Tx).Commit)
}

// beginAgain begins the transaction again after cause ended it. It reports done if the row turns out to be done, or if the
// transaction cannot begin.
//
// After a commit without a reply, a read alone would not be enough: the database may still be executing the commit. The
// mark waits for that transaction to end. Then it finds the row done, or marks it again.
func (t *eventTx) beginAgain(ctx context.Context, n int, at stage, cause error) (done bool, err error) {
	t.rollback()
	sqldb.Pause(ctx, n)
	// Also after ctx has ended: a host that stops needs to know the outcome of its commit too.
	beginCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.wait)
	defer cancel()
	err = t.begin(beginCtx)
	_, completed := errors.AsType[*doneError](err)
	other, inProgress := errors.AsType[*dedup.InProgressError](err)
	switch {
	case completed || errors.Is(err, errOwnCommit):
		// By our commit, or by another delivery between two attempts.
		return true, nil
	case errors.Is(err, errMarked):
		return true, fmt.Errorf("%w: %w", ErrImplicitCommit, cause)
	case err == nil && n == sqldb.MaxAttempts && at == finishing && ctx.Err() == nil:
		// Each time the row could be marked, and not be written after the handler: it may have set a statement_timeout.
		return true, fmt.Errorf("sqlstore: transaction: rolled back %d times, and given up: %w", n, cause)
	case err == nil && (n == sqldb.MaxAttempts || ctx.Err() != nil):
		return true, t.store.explain("transaction", fmt.Errorf("rolled back %d times, and given up: %w", n, cause))
	case err == nil:
		return false, nil
	case t.store.dialect.Classify(cause) == sqldb.Unknown:
		return true, fmt.Errorf("sqlstore: %w: %w: %w", dedup.ErrCommitUnknown, cause, err)
	case inProgress:
		return true, sqsonce.RetryAfter(time.Until(other.Until), other)
	default:
		return true, err
	}
}

// abort rolls back after the handler failed with err, and returns the error. If the row has the mark all the same, a
// statement of the handler committed it, and the error says so.
func (t *eventTx) abort(ctx context.Context, err error) error {
	if why := t.undo(ctx); why != nil {
		return fmt.Errorf("%w: handler returned: %w", why, err)
	}
	return err
}

// skip rolls back what the handler has written, and completes the event without it.
func (t *eventTx) skip(ctx context.Context, skipped error) error {
	if why := t.undo(ctx); why != nil {
		return fmt.Errorf("%w: handler returned: %v", why, skipped)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	return t.run(ctx, func(context.Context, *sql.Tx) error { return nil })
}

// undo rolls the open transaction back, and returns what is left of it: see abort.
func (t *eventTx) undo(ctx context.Context) error {
	if t.tx == nil {
		return nil
	}
	t.rollback()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.wait)
	defer cancel()
	marked, readErr := t.row.marked(ctx, t.store.db)
	readErr = t.store.explain("transaction", readErr)
	switch {
	case readErr == nil && marked:
		return ErrImplicitCommit
	case errors.Is(readErr, sqsonce.ErrUnavailable):
		// The handler needed the database too: this does not count as an attempt of the event.
		return question.FromStore(readErr)
	}
	return nil
}

// begin opens the transaction and marks the row. It waits if another transaction has the row. Others see nothing of this
// before the commit, so a failure here can always be retried.
func (t *eventTx) begin(ctx context.Context) error {
	start := time.Now()
	for n := 1; ; n++ {
		err := t.beginOnce(ctx)
		if err == nil || isRefusal(err) || errors.Is(err, errOwnCommit) || errors.Is(err, errMarked) {
			return err
		}
		retryable := t.store.base.MayRetry(err) || errors.Is(err, errContended)
		if !retryable || n == sqldb.MaxAttempts || time.Since(start) >= t.wait || !sqldb.Pause(ctx, n) {
			return t.store.explain("begin", err)
		}
	}
}

func (t *eventTx) beginOnce(ctx context.Context) error {
	// Until the row is marked the transaction ends with ctx. After that it goes on to the commit, whatever happens to ctx.
	txCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, cancel)
	timer := time.AfterFunc(t.wait, cancel)
	defer timer.Stop()
	tx, err := t.store.pool.begin(txCtx)
	if err != nil {
		defer cancel()
		return t.explain(ctx, txCtx, err)
	}
	t.tx, t.end = tx, cancel
	sent := time.Now()
	if err = t.row.mark(txCtx, tx); err == nil && detach() && timer.Stop() {
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
		return sqldb.GaveUp(context.Cause(ctx), err)
	default:
		return sqldb.GaveUp(errNoReply, err)
	}
}

// rollback ends the transaction if one is open. An error says that the connection is gone, and then the database rolls
// back by itself.
func (t *eventTx) rollback() {
	if t.tx == nil {
		return
	}
	if t.ran {
		t.resetSession()
	}
	_ = t.close((*sql.Tx).Rollback)
}

// resetSession undoes what the handler may have changed of its session: see [sqldb.Dialect.ResetSession].
func (t *eventTx) resetSession() {
	ctx, cancel := context.WithTimeout(context.Background(), t.wait)
	defer cancel()
	for _, text := range t.store.dialect.ResetSession() {
		if _, err := t.tx.ExecContext(ctx, text); err != nil {
			return // the connection is gone
		}
	}
}

func (t *eventTx) close(f func(*sql.Tx) error) error {
	timer := time.AfterFunc(t.wait, t.end)
	defer timer.Stop()
	err := f(t.tx)
	t.end()
	t.store.pool.leave()
	t.tx, t.ran = nil, false
	return err
}
