package sqloutbox

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// Park implements [outbox.Store].
func (o *Outbox) Park(ctx context.Context, e outbox.Entry, p outbox.RefusedPolicy, reason string) error {
	mark := halted
	switch p {
	case outbox.OnRefusedHalt:
	case outbox.OnRefusedSkip:
		mark = skipped
	default:
		return fieldError("policy", "is neither OnRefusedHalt nor OnRefusedSkip")
	}
	return o.run(ctx, "park", func(ctx context.Context) error {
		_, err := o.dialect.Write(ctx, o.db, o.stmts().mark, append([]any{mark, cut.Text(reason, cut.MostCause)}, o.ofEvent(e)...)...)
		return err
	})
}

// Unpark implements [outbox.Store].
func (o *Outbox) Unpark(ctx context.Context, e outbox.Entry) error {
	return o.decide(ctx, "unpark", func(s statements) string { return s.unmark }, e, func(err error) bool {
		return errors.Is(err, outbox.ErrNotParked) || errors.Is(err, outbox.ErrNotFound) // sent since
	})
}

// Discard implements [outbox.Store].
func (o *Outbox) Discard(ctx context.Context, e outbox.Entry) error {
	err := o.decide(ctx, "discard", func(s statements) string { return s.discard }, e, func(err error) bool { return errors.Is(err, outbox.ErrNotFound) })
	if err == nil {
		o.claims.deleted(e.Group, e.Seq)
	}
	return err
}

// decide runs an operator's statement on a parked event. done reports whether a second run's error, where the first one's
// answer was lost, says that the first one was carried out.
func (o *Outbox) decide(ctx context.Context, op string, text func(statements) string, e outbox.Entry, done func(error) bool) error {
	lost := false
	return o.run(ctx, op, func(ctx context.Context) error {
		written, err := o.dialect.Write(ctx, o.db, text(o.stmts()), o.ofEvent(e)...)
		if err != nil {
			lost = lost || o.dialect.Classify(err) == sqldb.Unknown
			return err
		}
		if written {
			return nil
		}
		if err := o.notParked(ctx, e); !lost || !done(err) {
			return err
		}
		return nil
	})
}

// notParked says why an event is not parked.
func (o *Outbox) notParked(ctx context.Context, e outbox.Entry) error {
	var parked string
	err := o.q.QueryRowContext(ctx, o.stmts().find, o.ofEvent(e)...).Scan(&parked)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return outbox.ErrNotFound
	case err != nil:
		return err
	default:
		return outbox.ErrNotParked
	}
}

// ofEvent are the arguments for one event.
func (o *Outbox) ofEvent(e outbox.Entry) []any { return []any{o.name, e.Group, e.Seq, e.ID} }

// Parked implements [outbox.Store], in the order of the events' numbers. An event that can't be decoded is an
// [outbox.ErrBroken] of its group, which comes together with the others.
func (o *Outbox) Parked(ctx context.Context, limit int) (es []outbox.Entry, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	var found []row
	err = o.run(ctx, "parked", func(ctx context.Context) (err error) {
		found, err = sqldb.All(ctx, o.q, readRow, o.stmts().parked, o.name, limit)
		return err
	})
	errs := []error{err}
	for _, r := range found {
		e, err := r.entry()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		es = append(es, e)
	}
	return es, errors.Join(errs...)
}
