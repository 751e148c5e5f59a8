package sqlstore

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Inspect implements [dedup.Inspector]. Retention and Takeover aren't stored and stay zero.
func (s *Store) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if err := checkText("key", key, maxKey); err != nil {
		return dedup.Record{}, err
	}
	var (
		r    record
		sent time.Time
	)
	err := s.retry(ctx, "inspect", func(ctx context.Context) (err error) {
		sent = time.Now()
		r, err = s.find(ctx, s.db, key)
		return err
	})
	if isMissing(err) {
		return dedup.Record{}, dedup.ErrNotFound
	}
	if err != nil {
		return dedup.Record{}, err
	}
	return r.public(sent), nil
}

// public is the record as operators see it, after a read that was sent at the given time.
func (r record) public(sent time.Time) dedup.Record {
	rec := r.kept
	rec.Key, rec.Owner, rec.Fence, rec.ReceiveCount = r.key, r.owner, r.fence, r.receiveCount
	rec.Completed, rec.ExpiresAt = r.status == completed, ownerEnd(sent, r.expires-r.now)
	if r.until > 0 {
		rec.Until = ownerEnd(sent, r.remaining())
	}
	return rec
}

// Delete deletes the record of key. If the lease is live, the error is a [*dedup.InProgressError], and the record stays
// unless forced. The error is nil if the record doesn't exist.
//
// To run an event again, use [Store.Reopen] instead. After a Delete the event's next delivery runs the handler too, even if
// the event was completed, but the database doesn't refuse a late copy of an earlier delivery's INSERT. Such a copy can
// lease the key once, although it doesn't start a handler. After a Delete and after a Reopen, a process that saw the event
// completed acknowledges it for a minute without reading its record.
func (s *Store) Delete(ctx context.Context, key string, optFns ...func(*dedup.DeleteOptions)) error {
	if err := checkText("key", key, maxKey); err != nil {
		return err
	}
	o := dedup.DeleteOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	return s.retry(ctx, "delete", func(ctx context.Context) error {
		text := s.stmts().remove
		if o.Force {
			text = s.stmts().removeAny
		}
		written, err := s.dialect.Write(ctx, s.db, text, key)
		if written || err != nil {
			return err
		}
		r, err := s.find(ctx, s.db, key)
		switch {
		case isMissing(err):
			return nil
		case err != nil:
			return err
		}
		return s.inProgress(ctx, r)
	})
}
