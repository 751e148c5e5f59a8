package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

const (
	// afterLease is how long a record is retained after its lease's end at least, so that a short retention deletes no live
	// lease.
	afterLease = time.Hour
	// minSweep is the number of records below which nothing is swept.
	minSweep = 1024
)

// record is one event's record. After a release the owner stays in the lease, so that a late copy of its acquire is refused.
type record struct {
	lease     dedup.Lease
	released  bool
	completed bool
	lastError string
	note      string // an operator's
	result    dedup.Result
	expires   time.Time
	tat, line int64 // of a key of a counter, in microseconds
}

// clone copies the data, which a caller could change.
func clone(r dedup.Result) dedup.Result {
	r.Data = slices.Clone(r.Data)
	return r
}

func check(ctx context.Context, c dedup.Claim) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Key == "" {
		return &sqsonce.OptionError{Package: "memstore", Field: "Claim.Key", Problem: "is empty"}
	}
	if c.Owner == "" {
		return &sqsonce.OptionError{Package: "memstore", Field: "Claim.Owner", Problem: "is empty"}
	}
	return nil
}

func retainUntil(l dedup.Lease, now time.Time) time.Time {
	byClaim, byLease := now.Add(l.Retention), l.Until.Add(afterLease)
	if byClaim.After(byLease) {
		return byClaim
	}
	return byLease
}

// findLocked returns the record of key. It deletes a record whose retention has ended and returns nil.
func (s *Store) findLocked(key string, now time.Time) *record {
	r := s.records[key]
	if r == nil || !now.Before(r.expires) {
		delete(s.records, key)
		return nil
	}
	return r
}

// ownedLocked returns the record of l's key if its owner is l's, in any state, and nil otherwise.
func (s *Store) ownedLocked(l dedup.Lease, now time.Time) *record {
	r := s.findLocked(l.Key, now)
	if r == nil || r.lease.Owner != l.Owner {
		return nil
	}
	return r
}

// sweepLocked deletes the records whose retention has ended. It runs only when the number of records has doubled since the
// last sweep, so that its cost per acquire is constant, and it needs no goroutine.
func (s *Store) sweepLocked(now time.Time) {
	if len(s.records) < s.sweepAt {
		return
	}
	for key := range s.records {
		s.findLocked(key, now)
	}
	s.sweepAt = max(minSweep, 2*len(s.records))
}
