package sqlstore

import (
	"cmp"
	"context"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// afterLease is how long a record is retained after its lease's end at least, so that Sweep deletes no live lease.
const afterLease = time.Hour

// retain is how long the record is kept from the acquire.
func retain(c dedup.Claim) time.Duration { return max(c.Retention, c.Lease+afterLease) }

func newLease(c dedup.Claim, fence int64, lastError string) dedup.Lease {
	return dedup.Lease{
		Key: c.Key, Owner: c.Owner, Fence: fence, Retention: c.Retention,
		Attempts: c.Attempt, LastError: lastError, Validation: c.Validation,
	}
}

// early is the caller's time of a lease's end, never later than the database's: what was left when the statement was
// evaluated, counted from before it was sent. The database's clock is rounded down to the millisecond, which may have
// made that a millisecond too long.
func early(sent time.Time, left int64) time.Time {
	return sent.Add(time.Duration(left-1) * time.Millisecond)
}

// late is the caller's time of another's lease's end, never earlier than the database's: counted from after the answer,
// and to the first millisecond in which the record can be taken.
func late(left int64) time.Time {
	return time.Now().Add(time.Duration(left+2) * time.Millisecond)
}

// start gives a new lease its end, and renews it first where less than half of it is left: the statement waited for a
// lock or the answer was slow. A holder renews at a third; under what is left here it would have begun too late.
func (s *Store) start(ctx context.Context, q queryer, l dedup.Lease, sent time.Time, d time.Duration) (dedup.Lease, error) {
	l.Until = early(sent, d.Milliseconds())
	if time.Until(l.Until) > d/2 {
		return l, nil
	}
	return s.renew(ctx, q, l, d)
}

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

func (s *Store) renew(ctx context.Context, q queryer, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	sent := time.Now()
	left, written, err := s.dialect.writeKept(ctx, q, s.text.renew,
		d.Milliseconds(), (d + afterLease).Milliseconds(), l.Key, l.Owner)
	switch {
	case err != nil:
		return dedup.Lease{}, err
	case !written:
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	l.Until = early(sent, left)
	return l, nil
}

// Complete implements [dedup.Store].
func (s *Store) Complete(ctx context.Context, l dedup.Lease, res dedup.Result) error {
	if err := checkText("Lease.Key", l.Key, maxKey); err != nil {
		return err
	}
	return s.retry(ctx, "complete", func(ctx context.Context) error {
		written, err := s.dialect.write(ctx, s.db, s.text.complete, res.Data, cmp.Or(res.Validation, l.Validation), l.Key, l.Owner)
		if written || err != nil {
			return err
		}
		// A second time, or after a lost reply of the first, the first result stays.
		r, err := s.find(ctx, s.db, l.Key)
		switch {
		case isMissing(err):
			return sqsonce.ErrLeaseLost
		case err != nil:
			return err
		case r.status == completed && r.owner == l.Owner:
			return nil
		default:
			return sqsonce.ErrLeaseLost
		}
	})
}

// Release implements [dedup.Store]. It keeps the first 256 bytes of the cause.
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := checkText("Lease.Key", l.Key, maxKey); err != nil {
		return err
	}
	text := ""
	if cause != nil {
		text = errorText(cause)
	}
	return s.release(ctx, l.Key, l.Owner, text)
}

// release keeps the last error where text is nil. A row that is not written is another's, completed or gone.
func (s *Store) release(ctx context.Context, key, owner string, text any) error {
	return s.retry(ctx, "release", func(ctx context.Context) error {
		_, err := s.dialect.write(ctx, s.db, s.text.release, text, key, owner)
		return err
	})
}

// abandon releases a lease that nobody will use, on a context of its own. Where this fails too, the key waits for the
// lease's end.
func (s *Store) abandon(ctx context.Context, key, owner string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownTimeout)
	defer cancel()
	// Nobody is left to tell: the acquire's own error has been returned, or its caller has left.
	_ = s.release(ctx, key, owner, nil)
}
