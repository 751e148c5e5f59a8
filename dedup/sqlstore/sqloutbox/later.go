package sqloutbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// ErrScheduled says that AddAt was given the ID of an event that is scheduled already.
var ErrScheduled = errors.New("sqloutbox: an event with this ID is scheduled: cancel it first")

// AddAt writes events in the caller's transaction that are published when due has come, by the database's clock. A relay then
// adds them to the outbox, as [Outbox.Add] does, in a transaction of its own (see [Outbox.Move]). Their place in their groups is
// that of this transaction: after all events that were committed until then, and before later ones. Events of a group that are
// due together come in the order of their due times, and those of one call in the slice's order.
//
// AddAt is one statement for up to 100 events, and doesn't lock a group. A due time in the past is due at once.
//
// After any error you must roll back the transaction. The errors are those of Add, and:
//
//   - [ErrScheduled] if an event with this ID is scheduled. To move its due time, call [Outbox.Cancel] and AddAt.
//   - a [*sqsonce.OptionError] if due is outside the years 1970 to 9999 in UTC, as the zero time is, or for an outbox with
//     [Options.GroupLocked], because a relay doesn't know the caller's lock.
func (o *Outbox) AddAt(ctx context.Context, tx *sql.Tx, due time.Time, es ...fifo.Event) error {
	err := checkEvents(tx, o.source, es)
	due = due.UTC().Add(time.Millisecond - 1) // rounded up to a millisecond: no event is early
	if y := due.Year(); y < 1970 || y > 9999 {
		err = errors.Join(err, fieldError("due", fmt.Sprintf("is in the year %d, and must be in 1970 to 9999", y)))
	}
	if o.groupLocked {
		err = errors.Join(err, fieldError("Options.GroupLocked", "is set: the relay that moves the events would not have the group's lock"))
	}
	if err != nil || len(es) == 0 {
		return err
	}
	if err := o.findPlace(ctx); err != nil {
		return err
	}
	rows, err := o.newRows(ctx, tx, es)
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].args = append(rows[i].args, laterKey(es[i].ID), due.UnixMilli(), i)
	}
	err = o.insert(ctx, tx, "INSERT INTO {outbox_later} ("+eventColumns+", later_key, due_at, place) VALUES ", "("+eventValues+", ?, ?, ?)", rows)
	if err != nil && o.dialect.Classify(err) == sqldb.Duplicate {
		return fmt.Errorf("%w: %w", ErrScheduled, err)
	}
	return err
}

// laterKey stands for an ID, because MySQL can't index any text.
func laterKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Cancel removes events that AddAt has scheduled, in the caller's transaction, and returns the IDs of those that it removed. If
// the transaction commits, they are never published. The others have been moved to the outbox, are published, or were never
// scheduled. Cancel is one statement for each ID, and waits for a relay that is moving the event. Call it before Add, because
// two transactions that call them in different orders may meet in a deadlock.
//
// The errors of the database are those of [Outbox.Add]. After any error you must roll back the transaction.
func (o *Outbox) Cancel(ctx context.Context, tx *sql.Tx, ids ...string) (cancelled []string, err error) {
	if tx == nil {
		return nil, fieldError("tx", "is nil")
	}
	if len(ids) == 0 {
		return nil, nil
	}
	if err := o.findPlace(ctx); err != nil {
		return nil, err
	}
	byKey := make(map[string]string, len(ids))
	for _, id := range ids {
		byKey[laterKey(id)] = id
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) { // one order in all transactions
		removed, err := o.place.Dialect().For(nil).Write(ctx, tx, o.stmts().cancel, o.name, key) // the transaction may be of another driver
		if err != nil {
			return nil, reporter.ExplainIn(o.dialect, "cancel", err)
		}
		if removed {
			cancelled = append(cancelled, byKey[key])
		}
	}
	return cancelled, nil
}

// Scheduled returns events that are scheduled, those that are due first, at most limit. With ids it returns only those. An event
// that can't be decoded is an [outbox.ErrBroken] of its group, without a Seq, which comes together with the others.
func (o *Outbox) Scheduled(ctx context.Context, limit int, ids ...string) (es []outbox.Scheduled, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	type dueRow struct {
		row
		due int64
	}
	args, only := []any{o.name}, ""
	for _, id := range ids {
		args = append(args, laterKey(id))
	}
	if len(ids) > 0 {
		only = " AND later_key IN (" + list(len(ids)) + ")"
	}
	text := o.place.Dialect().SQL("SELECT due_at, aggregateid, {raw}id{/raw}, source, {raw}type{/raw}, {raw}payload{/raw}, {raw}attributes{/raw}," +
		" {raw}trace{/raw} FROM {outbox_later} WHERE aggregatetype = ?" + only + " ORDER BY " + dueOrder + " LIMIT ?")
	var found []dueRow
	err = o.run(ctx, "scheduled", func(ctx context.Context) (err error) {
		found, err = sqldb.All(ctx, o.q, func(s sqldb.Row) (r dueRow, err error) {
			err = s.Scan(&r.due, &r.group, &r.id, &r.source, &r.kind, &r.body, &r.attributes, &r.trace)
			return r, err
		}, text, append(args, limit)...)
		return err
	})
	errs := []error{err}
	for _, r := range found {
		e, err := r.entry()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		es = append(es, outbox.Scheduled{Event: e.Event, Source: e.Source, Due: time.UnixMilli(r.due).UTC()})
	}
	return es, errors.Join(errs...)
}

var errCancelLost = errors.New("the database's answer was lost, and the event is not scheduled any more: it was cancelled, or it was due and a relay has moved it")

// CancelScheduled is [Outbox.Cancel] for an operator, in a transaction of its own. The error matches [outbox.ErrNotFound] if the
// event is not scheduled.
func (o *Outbox) CancelScheduled(ctx context.Context, id string) error {
	lost := false
	return o.run(ctx, "cancel", func(ctx context.Context) error {
		removed, err := o.dialect.Write(ctx, o.db, o.stmts().cancel, o.name, laterKey(id))
		switch {
		case err != nil:
			lost = lost || o.dialect.Classify(err) == sqldb.Unknown
			return err
		case removed:
			return nil
		case lost:
			return errCancelLost
		}
		return outbox.ErrNotFound
	})
}
