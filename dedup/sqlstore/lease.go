package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// Renew implements [dedup.Store].
func (s *Store) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if err := checkText("Lease.Key", l.Key, maxKey); err != nil {
		return dedup.Lease{}, err
	}
	var renewed dedup.Lease
	err := s.retry(ctx, "renew", func(ctx context.Context) (err error) {
		renewed, err = s.renew(ctx, s.db, l, d)
		return err
	})
	return renewed, err
}

func (s *Store) renew(ctx context.Context, q sqldb.Queryer, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	sent := time.Now()
	written, err := s.dialect.Write(ctx, q, s.stmts().renew,
		d.Milliseconds(), d.Milliseconds(), (d + afterLease).Milliseconds(), l.Key, l.Owner)
	switch {
	case err != nil:
		return dedup.Lease{}, err
	case !written:
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	// The record's own end may be later: its clock may have been ahead. Another delivery may then shorten it.
	if end := ownerEnd(sent, d.Milliseconds()); end.After(l.Until) {
		l.Until = end
	}
	return l, nil
}

// Complete implements [dedup.Store].
func (s *Store) Complete(ctx context.Context, l dedup.Lease, res dedup.Result) error {
	if err := checkText("Lease.Key", l.Key, maxKey); err != nil {
		return err
	}
	if err := s.left.wait(ctx, l.Key, l.Owner); err != nil {
		return err
	}
	return s.retry(ctx, "complete", func(ctx context.Context) error {
		written, err := s.dialect.Write(ctx, s.db, s.stmts().complete, completeArgs(l, res)...)
		if written || err != nil {
			return err
		}
		// A second call, or one after a lost reply, keeps the first result.
		return s.expectOwn(ctx, l, func(r record) bool { return r.status == completed })
	})
}

// expectOwn returns nil if the record has the lease's owner and is as expected.
func (s *Store) expectOwn(ctx context.Context, l dedup.Lease, is func(record) bool) error {
	r, err := s.find(ctx, s.db, l.Key)
	switch {
	case isMissing(err), errors.Is(err, dedup.ErrRecord):
		return sqsonce.ErrLeaseLost
	case err != nil:
		return err
	case r.owner == l.Owner && is(r):
		return nil
	default:
		return sqsonce.ErrLeaseLost
	}
}

// inProgress is the error of an operation that another owner's lease refused.
func (s *Store) inProgress(ctx context.Context, r record) error {
	if err := s.shorten(ctx, s.db, r); err != nil {
		return err
	}
	return &dedup.InProgressError{Until: othersEnd(r.remaining())}
}

// Release implements [dedup.Store]. It stores the first 256 bytes of the cause's text.
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := checkText("Lease.Key", l.Key, maxKey); err != nil {
		return err
	}
	if err := s.left.wait(ctx, l.Key, l.Owner); err != nil {
		return err
	}
	text := cut.Cause(cause)
	return s.retry(ctx, "release", func(ctx context.Context) error {
		written, err := s.dialect.Write(ctx, s.db, s.stmts().release, text, l.Key, l.Owner)
		if written || err != nil {
			return err
		}
		// A second call, one after a lost reply, or one after a complete.
		return s.expectOwn(ctx, l, func(r record) bool { return r.status == completed || r.until == 0 })
	})
}
