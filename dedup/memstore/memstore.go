// Package memstore keeps the records of package dedup in memory, for tests and local experiments.
//
// It must never guard production traffic. Records are lost with the process, so every event in flight at a deployment
// or a crash runs again; and they are seen by one process, so two workers or two Lambda environments both run the
// handler for the same event.
//
// Its clock is the caller's own, which makes it exact: a lease is taken over in the instant it ends, without the guard
// that stores on other machines need.
package memstore

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Options configure [New].
type Options struct {
	// Now is the store's clock. Default: time.Now.
	Now func() time.Time
}

// Store implements [dedup.Store]. It is safe for concurrent use. There is nothing to close.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	records map[string]*record
	sweepAt int // number of records at which expired ones are looked for next
}

var _ dedup.Store = (*Store)(nil)

// New returns an empty store.
func New(optFns ...func(*Options)) *Store {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{now: o.Now, records: make(map[string]*record), sweepAt: minSweep}
}

// Acquire implements [dedup.Store].
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Lease, error) {
	if err := check(ctx, c); err != nil {
		return dedup.Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.sweepLocked(now)
	r := s.retainedLocked(c.Key, now)
	l := dedup.Lease{
		Key: c.Key, Owner: c.Owner, Fence: now.UnixMilli(), Until: now.Add(c.Lease),
		Retention: c.Retention, Attempts: c.Attempt, Validation: c.Validation,
	}
	if r != nil {
		switch {
		case r.completed:
			return dedup.Lease{}, &dedup.CompletedError{Result: clone(r.result)}
		case r.lease.Owner == c.Owner && r.released:
			return dedup.Lease{}, sqsonce.ErrLeaseLost // a delayed copy of a call whose owner has let go
		case r.lease.Owner == c.Owner:
			own := r.lease
			own.OwnRetry = true
			return own, nil
		case !r.released && now.Before(r.lease.Until):
			return dedup.Lease{}, &dedup.InProgressError{Until: r.lease.Until}
		case !r.released && c.NoTakeover:
			return dedup.Lease{}, &dedup.InProgressError{Crashed: true}
		}
		// Two owners in one millisecond: the clock alone would give them one fence.
		l.Fence = max(l.Fence, r.lease.Fence+1)
		l.Takeover = !r.released
		l.LastError = r.lastError
	}
	s.records[c.Key] = &record{lease: l, lastError: l.LastError, expires: retainUntil(l, now)}
	return l, nil
}

// Renew implements [dedup.Store].
func (s *Store) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if err := ctx.Err(); err != nil {
		return dedup.Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	r := s.ownedLocked(l, now)
	if r == nil || r.completed || r.released {
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	if until := now.Add(d); until.After(r.lease.Until) {
		r.lease.Until = until
	}
	if least := r.lease.Until.Add(leastAfterLease); least.After(r.expires) {
		r.expires = least
	}
	return r.lease, nil
}

// Complete implements [dedup.Store].
func (s *Store) Complete(ctx context.Context, l dedup.Lease, res dedup.Result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.ownedLocked(l, s.now())
	if r == nil {
		return sqsonce.ErrLeaseLost
	}
	if r.completed {
		return nil // the first result stays: a delayed copy must not replace it
	}
	res.Validation = cmp.Or(res.Validation, l.Validation)
	r.completed, r.result = true, clone(res)
	return nil
}

// Release implements [dedup.Store].
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.ownedLocked(l, s.now()); r != nil && !r.completed {
		r.released = true
		r.lastError = ""
		if cause != nil {
			r.lastError = truncate(cause.Error())
		}
	}
	return nil
}
