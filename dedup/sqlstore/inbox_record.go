package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// inboxTexts are the statements of an inbox. The record is written as completed: nobody sees that before the commit, and
// the commit then needs no statement of ours.
type inboxTexts struct{ insert, take, noteNew, note string }

func newInboxTexts(d Dialect) inboxTexts {
	const free = "(status = 'INPROGRESS' AND lease_until < {now} OR status = 'COMPLETED' AND expires_at < {now})"
	return inboxTexts{
		insert: d.sql("INSERT INTO {records} (id, status, owner, fence, lease_until, expires_at, attempts, validation)" +
			" VALUES (?, 'COMPLETED', ?, " + d.kept("{now}") + ", 0, {now} + ?, ?, ?) {ignore}" + d.returned("fence")),

		// As it was read, and only if it is free: see texts.take.
		take: d.sql("UPDATE {records} SET owner = ?, fence = " + d.kept("{greatest}(fence + 1, {now})") + "," +
			" expires_at = {now} + ?, attempts = ?, validation = ?, result = NULL, lease_until = 0, status = 'COMPLETED'" +
			" WHERE id = ? AND fence = ? AND lease_until = ? AND " + free + d.returned("fence")),

		noteNew: d.sql("INSERT INTO {records} (id, status, owner, fence, lease_until, expires_at, attempts, error)" +
			" VALUES (?, 'INPROGRESS', ?, ?, 0, {now} + ?, ?, ?) {ignore}"),

		// In MySQL an assignment sees those before it: what the WHERE of free asks for comes last.
		note: d.sql("UPDATE {records} SET owner = ?, fence = {greatest}(fence, ?), attempts = ?, error = ?, result = NULL," +
			" expires_at = {now} + ?, lease_until = 0, status = 'INPROGRESS' WHERE id = ? AND " + free),
	}
}

// delivery is one delivery's claim to an event, and its transaction.
type delivery struct {
	inbox *Inbox
	claim dedup.Claim
	lease dedup.Lease
	tx    guarded
}

// insert writes the record in the transaction. Where there is one already, that decides.
//
// Of two deliveries that come at once both insert, and the second one's statement waits for the first one's transaction.
// When that is committed, the second finds the record completed; when it is rolled back, the second has inserted. The
// read and the UPDATE between them are no check and act: the UPDATE names what was read, waits for the row's lock as the
// INSERT does, and writes nothing where the row has changed.
func (d *delivery) insert(ctx context.Context, tx *sql.Tx) error {
	s, c := d.inbox.store, d.claim
	fence, written, err := d.inbox.first.writeKept(ctx, tx,
		c.Key, c.Owner, c.Retention.Milliseconds(), c.Attempt, c.Validation)
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
	switch r.standing(c) {
	case done: // also where it is ours, after a commit whose answer was lost
		return &dedup.CompletedError{Result: r.result}
	case free:
	default: // a Once holds it by a lease
		return &dedup.InProgressError{Until: late(max(0, r.until-r.now))}
	}
	fence, written, err = s.dialect.writeKept(ctx, tx, d.inbox.text.take,
		c.Owner, c.Retention.Milliseconds(), c.Attempt, c.Validation, c.Key, r.fence, r.until)
	if err == nil && !written {
		err = errContended
	}
	d.lease = newLease(c, fence, r.lastError)
	d.lease.Takeover = r.status == inProgress && r.until > 0
	return err
}

// note keeps the error and the receive count of a delivery whose transaction was rolled back, in a record that is free. A
// record that others have completed, or hold, stays as it is.
func (d *delivery) note(ctx context.Context, cause error) error {
	if errors.Is(cause, sqsonce.ErrInProgress) {
		return nil // another delivery is at it: this one has no outcome to keep
	}
	s, c, text := d.inbox.store, d.claim, errorText(cause)
	return s.retry(ctx, "keep the error", func(ctx context.Context) error {
		written, err := s.dialect.write(ctx, s.db, d.inbox.text.noteNew,
			c.Key, c.Owner, d.lease.Fence, c.Retention.Milliseconds(), c.Attempt, text)
		if err != nil || written {
			return err
		}
		_, err = s.dialect.write(ctx, s.db, d.inbox.text.note,
			c.Owner, d.lease.Fence, c.Attempt, text, c.Retention.Milliseconds(), c.Key)
		return err
	})
}
