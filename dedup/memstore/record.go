package memstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

const (
	// leastAfterLease keeps a record this long after its lease's end, so that a short retention frees no live lease.
	leastAfterLease = time.Hour
	// maxError is the most bytes of a release's cause that are kept.
	maxError = 256
	minSweep = 1024
)

// record is one event. The owner of a released record stays in its lease: a delayed acquire of it is refused by that.
type record struct {
	lease     dedup.Lease
	released  bool
	completed bool
	lastError string
	result    dedup.Result
	expires   time.Time
}

// clone copies what a caller could change.
func clone(r dedup.Result) dedup.Result {
	r.Data = slices.Clone(r.Data)
	return r
}

func check(ctx context.Context, c dedup.Claim) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Key == "" {
		return &sqsonce.FieldError{Package: "memstore", Field: "Claim.Key", Problem: "is empty"}
	}
	if c.Owner == "" {
		return &sqsonce.FieldError{Package: "memstore", Field: "Claim.Owner", Problem: "is empty"}
	}
	return nil
}

func retainUntil(l dedup.Lease, now time.Time) time.Time {
	byClaim, byLease := now.Add(l.Retention), l.Until.Add(leastAfterLease)
	if byClaim.After(byLease) {
		return byClaim
	}
	return byLease
}

// retainedLocked returns the record of key, or nil where there is none or its retention is over.
func (s *Store) retainedLocked(key string, now time.Time) *record {
	r := s.records[key]
	if r == nil || !now.Before(r.expires) {
		delete(s.records, key)
		return nil
	}
	return r
}

// ownedLocked returns the record that l's owner holds, held, released or completed; nil where it is another's or gone.
func (s *Store) ownedLocked(l dedup.Lease, now time.Time) *record {
	r := s.retainedLocked(l.Key, now)
	if r == nil || r.lease.Owner != l.Owner {
		return nil
	}
	return r
}

// sweepLocked forgets the records whose retention is over. It looks at all of them only when their number has doubled
// since the last time, which keeps an acquire's share constant and needs no goroutine.
func (s *Store) sweepLocked(now time.Time) {
	if len(s.records) < s.sweepAt {
		return
	}
	for key := range s.records {
		s.retainedLocked(key, now)
	}
	s.sweepAt = max(minSweep, 2*len(s.records))
}

// truncate shortens s to whole characters.
func truncate(s string) string {
	if len(s) > maxError {
		s = s[:maxError]
	}
	return strings.ToValidUTF8(s, "")
}
