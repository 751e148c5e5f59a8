package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// skip completes the record of an event that its handler skipped.
func (d *delivery) skip(ctx context.Context, skipped error) (completed bool, err error) {
	d.skipped = skipped
	err = d.tx.skip(ctx, skipped)
	if _, completed := errors.AsType[*doneError](err); err == nil || completed { // else by another delivery since
		return true, skipped
	}
	return false, d.tx.abort(ctx, err)
}

type deliveryKey struct{}

func deliveryFrom(ctx context.Context) *delivery { return ctx.Value(deliveryKey{}).(*delivery) }

// refused is the answer to an acquire whose transaction did not begin. The transaction has its answers as errors. It was
// rolled back, so it could not shorten an overlong lease.
func (d *delivery) refused(ctx context.Context, err error) (dedup.Grant, error) {
	if done, ok := errors.AsType[*doneError](err); ok {
		return dedup.Grant{Verdict: dedup.VerdictCompleted, Result: done.result}, nil
	}
	if other, ok := errors.AsType[*dedup.InProgressError](err); ok {
		s := d.inbox.store
		err := s.retry(ctx, "shorten lease", func(ctx context.Context) error { return s.shorten(ctx, s.db, d.other) })
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: other.Until}, err
	}
	return dedup.Grant{}, err
}

// inboxStatements are an inbox's statements that a store does not have.
type inboxStatements struct{ complete, insertFailure, updateFailure string }

func newInboxStatements(d sqldb.Dialect) inboxStatements {
	return inboxStatements{
		complete: d.SQL(complete + "{commits}"),

		insertFailure: d.SQL("INSERT INTO {records} (id, status, owner, fence, lease_until, expires_at, receive_count, error)" +
			" VALUES (?, 'INPROGRESS', ?, ?, 0, {now} + ?, ?, ?) {ignore}"),

		// In MySQL an assignment sees the assignments before it, so the columns of isFree come last.
		updateFailure: d.SQL("UPDATE {records} SET owner = ?, fence = {greatest}(fence, ?), receive_count = ?, error = ?, " + emptyResult + "," +
			" expires_at = {now} + ?, lease_until = 0, status = 'INPROGRESS' WHERE id = ? AND " + isFree),
	}
}

// delivery is one delivery's claim to an event, and its transaction.
type delivery struct {
	inbox *Inbox
	claim dedup.Claim
	lease dedup.Lease
	tx    eventTx
	// other is the record by which another owner's lease refused the transaction.
	other record
	// start is the note of the start, or nil.
	start *dedup.Lease
	// skipped is the reason to complete the record without writes of the handler, or nil.
	skipped error
}

// mark writes the record with a lease of CallTimeout, unless an existing record refuses it: see [eventRow].
//
// If two deliveries come at once, both insert, and the second one's statement waits for the first one's transaction. When
// that is committed, the second finds the record completed. When it is rolled back, the second has inserted. The read and
// the UPDATE after it cannot race: the UPDATE names what was read, waits for the row's lock as the INSERT does, and writes
// nothing if the row has changed.
func (d *delivery) mark(ctx context.Context, tx *sql.Tx) error {
	s, c := d.inbox.store, d.claim
	fence, written, err := d.inbox.insert.writeReturning(ctx, tx, insertArgs(c)...)
	if err != nil || written {
		d.lease = newLease(c, fence, "")
		return err
	}
	r, err := s.find(ctx, tx, c.Key)
	if err != nil {
		if isMissing(err) { // swept or deleted since
			err = errContended
		}
		return err
	}
	switch r.stateFor(c) {
	case done: // also by this owner, after a commit whose reply was lost
		return &doneError{r.kept.Result}
	case owned:
		return errMarked
	case free:
	default: // another owner has a lease on it
		d.other = r
		return &dedup.InProgressError{Until: othersEnd(r.remaining())}
	}
	fence, written, err = s.dialect.WriteReturning(ctx, tx, s.stmts().take, takeArgs(c, r)...)
	if err == nil && !written {
		err = errContended
	}
	d.lease = newLease(c, fence, r.kept.LastError)
	if d.start != nil && r.owner == d.start.Owner {
		d.lease.Takeover, d.lease.TakenFrom, d.lease.TakenOwner = d.start.Takeover, d.start.TakenFrom, d.start.TakenOwner
	} else {
		r.takenBy(&d.lease)
	}
	return err
}

// noteStart commits a record that looks like that of a process that crashed, so that the next delivery knows of a crash of
// this one, which rolls its transaction back. The lease of that record has ended. The row's lock keeps other deliveries
// out, as at a first receive, which needs no note. The owner is another one than that of the transaction, whose finish
// needs its own mark.
func (d *delivery) noteStart(ctx context.Context) error {
	if d.claim.ReceiveCount < 2 {
		return nil
	}
	note := &delivery{inbox: d.inbox, claim: d.claim}
	note.claim.Owner, note.claim.Lease = "started/"+d.claim.Owner, -time.Millisecond
	note.tx = eventTx{store: d.inbox.store, wait: d.inbox.wait, row: note}
	if err := note.tx.begin(ctx); err != nil {
		d.other = note.other
		return err
	}
	if err := note.tx.close((*sql.Tx).Commit); err != nil {
		return d.inbox.store.explain("note of the start", err)
	}
	d.start = &note.lease
	return nil
}

// withdrawStart releases the note of a start that did not follow, which would look like a crash. An earlier crash stays.
func (d *delivery) withdrawStart(ctx context.Context, cause error) {
	if d.start == nil || d.start.Takeover || isRefusal(cause) {
		return
	}
	s := d.inbox.store
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.tx.wait)
	defer cancel()
	err := s.retry(ctx, "withdraw start", func(ctx context.Context) error {
		_, err := s.dialect.Write(ctx, s.db, s.stmts().release, d.start.LastError, d.start.Key, d.start.Owner)
		return err
	})
	if err != nil {
		s.logger.WarnContext(ctx, "sqlstore: inbox: failure not recorded", "key", d.claim.Key, "message_id", settle.MessageID(ctx), "error", err)
	}
}

// finish completes the record, if it is this owner's: see [eventRow].
func (d *delivery) finish(ctx context.Context, tx *sql.Tx) (bool, error) {
	return d.inbox.complete.write(ctx, tx, completeArgs(d.lease, inboxkit.ResultOf(ctx, d.skipped))...)
}

func (d *delivery) marked(ctx context.Context, q sqldb.Queryer) (bool, error) {
	r, err := d.inbox.store.find(ctx, q, d.claim.Key)
	if isMissing(err) {
		return false, nil
	}
	return r.stateFor(d.claim) == owned, err
}

// recordFailure stores the error and the receive count of a delivery whose transaction was rolled back, if the record is
// free. A record that another delivery has completed or leased does not change. Without a cause the delivery was postponed.
func (d *delivery) recordFailure(ctx context.Context, cause error) error {
	if (cause == nil || errors.Is(cause, sqsonce.ErrInProgress)) && d.start == nil {
		return nil // this delivery has not failed, or another one is handling the event
	}
	s, c, text := d.inbox.store, d.claim, cut.Cause(cause)
	return s.retry(ctx, "record failure", func(ctx context.Context) error {
		written, err := s.dialect.Write(ctx, s.db, d.inbox.stmts().insertFailure,
			c.Key, c.Owner, d.lease.Fence, c.Retention.Milliseconds(), c.ReceiveCount, text)
		if err != nil || written {
			return err
		}
		// The record that an implicit commit has left.
		if written, err = s.dialect.Write(ctx, s.db, s.stmts().release, text, c.Key, c.Owner); err != nil || written {
			return err
		}
		_, err = s.dialect.Write(ctx, s.db, d.inbox.stmts().updateFailure,
			c.Owner, d.lease.Fence, c.ReceiveCount, text, c.Retention.Milliseconds(), c.Key)
		return err
	})
}
