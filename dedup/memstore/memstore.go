// Package memstore keeps the records of package dedup in memory, for tests and local experiments.
//
// Never use it in production. Records are lost with the process, so every event in flight at a deployment or a crash runs
// again. And only one process sees them, so two workers or two Lambda environments both run the handler for the same event.
//
// Its clock is the caller's own, so a lease can be taken over at the instant at which it ends. Stores on other machines wait
// longer, because clocks differ.
package memstore

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// Store implements [dedup.Store]. It is safe for concurrent use and does not need a Close.
type Store struct {
	mu      sync.Mutex
	records map[string]*record
	sweepAt int // number of records at which the next sweep runs
}

var (
	_ dedup.Store    = (*Store)(nil)
	_ dedup.Reopener = (*Store)(nil)
	_ dedup.Keeper   = (*Store)(nil)
	_ dedup.Lister   = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{records: make(map[string]*record), sweepAt: minSweep}
}

// Acquire implements [dedup.Store].
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if err := check(ctx, c); err != nil {
		return dedup.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweepLocked(now)
	r, note := s.findLocked(c.Key, now), ""
	l := dedup.Lease{
		Key: c.Key, Owner: c.Owner, Fence: now.UnixMilli(), Until: now.Add(c.Lease),
		Retention: c.Retention, ReceiveCount: c.ReceiveCount,
	}
	if r != nil {
		switch {
		case r.completed:
			return dedup.Grant{Verdict: dedup.VerdictCompleted, Result: clone(r.result)}, nil
		case r.lease.Owner == c.Owner && r.released:
			return dedup.Grant{Verdict: dedup.VerdictLost}, nil // a late copy of an acquire whose owner has released
		case r.lease.Owner == c.Owner:
			own := r.lease
			own.OwnRetry = true
			return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: own}, nil
		case !r.released && now.Before(r.lease.Until):
			return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: r.lease.Until}, nil
		case !r.released && c.NoTakeover:
			return dedup.Grant{Verdict: dedup.VerdictCrashed}, nil
		}
		// Two owners in one millisecond would get the same fence from the clock.
		l.Fence = max(l.Fence, r.lease.Fence+1)
		if l.Takeover = !r.released; l.Takeover {
			l.TakenFrom, l.TakenOwner = r.lease.Fence, r.lease.Owner
		}
		l.LastError, note = r.lastError, r.note
	}
	s.records[c.Key] = &record{lease: l, lastError: l.LastError, note: note, expires: retainUntil(l, now)}
	return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l}, nil
}

// Renew implements [dedup.Store].
func (s *Store) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if err := ctx.Err(); err != nil {
		return dedup.Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.ownedLocked(l, now)
	if r == nil || r.completed || r.released {
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	if until := now.Add(d); until.After(r.lease.Until) {
		r.lease.Until = until
	}
	if earliest := r.lease.Until.Add(afterLease); earliest.After(r.expires) {
		r.expires = earliest
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
	r := s.ownedLocked(l, time.Now())
	if r == nil {
		return sqsonce.ErrLeaseLost
	}
	if r.completed {
		return nil // a late copy must not replace the first result
	}
	if res.Skipped != nil {
		r.lastError, res.Skipped = cut.Cause(res.Skipped), nil
	}
	r.note, res.Note = cmp.Or(cut.Text(res.Note, cut.MostCause), r.note), ""
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
	r := s.ownedLocked(l, time.Now())
	if r == nil {
		return sqsonce.ErrLeaseLost
	}
	if r.completed || r.released {
		return nil
	}
	r.released, r.lastError = true, ""
	if cause != nil {
		r.lastError = cut.Cause(cause)
	}
	return nil
}

// Check reports whether the store can be used. It always can, so the error is that of ctx.
func (s *Store) Check(ctx context.Context) error { return ctx.Err() }
