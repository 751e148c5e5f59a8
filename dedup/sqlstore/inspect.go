package sqlstore

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Inspect returns the record of key, or [dedup.ErrNotFound]. The key is the consumer's name, '#' and the event's key. A
// released record has a zero Until, and its LastError says why it was released. Retention and Takeover are not stored and
// stay zero.
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
	rec := dedup.Record{
		Lease: dedup.Lease{
			Key: key, Owner: r.owner, Fence: r.fence, Attempts: r.attempts, LastError: r.lastError,
			Validation: r.result.Validation,
		},
		Completed: r.status == completed,
		Result:    r.result,
		ExpiresAt: ownerEnd(sent, r.expires-r.now),
	}
	if r.until > 0 {
		rec.Until = ownerEnd(sent, r.until-r.now)
	}
	return rec, nil
}

// DeleteOptions configure [Store.Delete].
type DeleteOptions struct {
	// Force also deletes a record whose lease is live. Its owner gets [sqsonce.ErrLeaseLost], and another delivery may run
	// at the same time. Default: false.
	Force bool
}

// Delete deletes the record of key, so that the event's next delivery runs the handler, also if the event was completed.
// The error is a [*dedup.InProgressError] if the lease is live, and the record then stays unless forced. It is nil if there
// is no record.
//
// Without its record a late copy of an earlier delivery's INSERT is not refused: it can lease the key once, although no
// handler runs.
func (s *Store) Delete(ctx context.Context, key string, optFns ...func(*DeleteOptions)) error {
	if err := checkText("key", key, maxKey); err != nil {
		return err
	}
	o := DeleteOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	text := s.stmts.remove
	if o.Force {
		text = s.stmts.removeAny
	}
	return s.retry(ctx, "delete", func(ctx context.Context) error {
		written, err := s.dialect.write(ctx, s.db, text, key)
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
		return &dedup.InProgressError{Until: othersEnd(max(0, r.until-r.now))}
	})
}
