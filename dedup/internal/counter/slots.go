package counter

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Slots are records of the store that are never completed.
type Slots struct {
	Store dedup.Store
	// Package is the store's, for the errors.
	Package string
}

// redelivery is the receive count of an acquire. A slot's record usually exists: with the receive count of a first
// delivery a store would try to insert it.
const redelivery = 2

// Acquire implements [limit.Counter].
func (s Slots) Acquire(ctx context.Context, slot, owner string, lease time.Duration) error {
	if err := s.check(slot, owner, lease); err != nil {
		return err
	}
	g, err := s.Store.Acquire(ctx, dedup.Claim{
		Key: RecordKey(slot), Owner: owner, Lease: lease, Retention: Retention, ReceiveCount: redelivery,
	})
	switch {
	case err != nil:
		return err
	case g.Verdict == dedup.VerdictGranted:
		return nil
	case g.Verdict == dedup.VerdictLost:
		return counting.ErrLeaseLost
	default:
		return counting.ErrTaken
	}
}

// Renew implements [limit.Counter].
func (s Slots) Renew(ctx context.Context, slot, owner string, lease time.Duration) error {
	if err := s.check(slot, owner, lease); err != nil {
		return err
	}
	_, err := s.Store.Renew(ctx, leaseOf(slot, owner), lease)
	if errors.Is(err, sqsonce.ErrLeaseLost) {
		return counting.ErrLeaseLost
	}
	return err
}

// Release implements [limit.Counter].
func (s Slots) Release(ctx context.Context, slot, owner string) error {
	if err := s.check(slot, owner, 1); err != nil {
		return err
	}
	err := s.Store.Release(ctx, leaseOf(slot, owner), nil)
	if errors.Is(err, sqsonce.ErrLeaseLost) {
		return nil
	}
	return err
}

// leaseOf is the lease of an owner who doesn't keep its fence. No owner's is 0, by which a store knows an acquire
// without an answer.
func leaseOf(slot, owner string) dedup.Lease {
	return dedup.Lease{Key: RecordKey(slot), Owner: owner, Fence: 1, Retention: Retention}
}

func (s Slots) check(slot, owner string, lease time.Duration) error {
	p := host.Problems{Package: s.Package}
	p.Add(slot == "", "slot", "is empty")
	p.Add(owner == "", "owner", "is empty")
	p.Add(lease <= 0, "lease", "is not positive")
	return p.Err()
}
