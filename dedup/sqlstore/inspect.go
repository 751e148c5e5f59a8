package sqlstore

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Inspect returns the record of key, or [dedup.ErrNotFound]. A released record has a zero Until, and its LastError is
// why. Retention and Takeover are not stored and stay zero. The record's key is the consumer's name, '#' and the event's
// key.
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
		ExpiresAt: early(sent, r.expires-r.now),
	}
	if r.until > 0 {
		rec.Until = early(sent, r.until-r.now)
	}
	return rec, nil
}

// DeleteOptions configure [Store.Delete].
type DeleteOptions struct {
	// Force also deletes a record whose lease is live: its holder is told that it lost the lease and another delivery may
	// run beside it. Default: false.
	Force bool
}

// Delete forgets the record of key, so that the event's next delivery runs the handler, also where it was completed
// before. A record whose lease is live is a [*dedup.InProgressError] and stays, unless forced; a key without a record is
// nil.
//
// A statement of an earlier delivery that the database still executes, which no record refuses now, can take the key for
// one lease although nobody runs.
func (s *Store) Delete(ctx context.Context, key string, optFns ...func(*DeleteOptions)) error {
	if err := checkText("key", key, maxKey); err != nil {
		return err
	}
	o := DeleteOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	text := s.text.remove
	if o.Force {
		text = s.text.removeAny
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
		return &dedup.InProgressError{Until: late(max(0, r.until-r.now))}
	})
}
