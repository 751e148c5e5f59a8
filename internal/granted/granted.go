// Package granted is for tests that call a store's Acquire.
package granted

import (
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// ErrCompleted stands for [dedup.VerdictCompleted].
var ErrCompleted = errors.New("granted: event completed before")

// Lease returns the lease that a store has granted. Any other verdict is an error: ErrCompleted, a [*dedup.InProgressError],
// [dedup.ErrCrashed] or [sqsonce.ErrLeaseLost].
func Lease(g dedup.Grant, err error) (dedup.Lease, error) {
	if err != nil {
		return dedup.Lease{}, err
	}
	switch g.Verdict {
	case dedup.VerdictGranted:
		return g.Lease, nil
	case dedup.VerdictCompleted:
		return dedup.Lease{}, ErrCompleted
	case dedup.VerdictInProgress:
		return dedup.Lease{}, &dedup.InProgressError{Until: g.Until}
	case dedup.VerdictCrashed:
		return dedup.Lease{}, dedup.ErrCrashed
	case dedup.VerdictLost:
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	return dedup.Lease{}, fmt.Errorf("granted: %s", g.Verdict)
}
