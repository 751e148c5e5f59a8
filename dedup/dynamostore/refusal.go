package dynamostore

import (
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// standing is what a refused acquire's item says about the record.
type standing int

const (
	free    standing = iota // nobody holds it: refused by the fence alone, or by time clauses that were off
	ours                    // held by this owner: an earlier copy of the acquire was granted
	lost                    // released by this owner: it gets the record no more
	held                    // another's lease may live
	crashed                 // another's lease ended without a release, and such a record is not taken over
	done                    // completed, and its retention is not over
)

// read judges the record of a refused acquire. now is the taker's clock in milliseconds. Every comparison is the
// condition's own: inside the guard a record is held, never neither held nor free.
func (r record) read(owner string, now int64, noTakeover bool) standing {
	switch {
	case r.status == completed && r.forgotten(now):
		return free
	case r.status == completed:
		return done
	case r.owner == owner && r.until != nil && *r.until > 0:
		return ours
	case r.owner == owner:
		return lost
	case noTakeover && r.until != nil && *r.until == 0:
		return free // that condition compares it with zero, not with the clock
	case !r.over(now):
		return held
	case noTakeover && r.until != nil:
		return crashed
	default:
		return free
	}
}

// over reports whether an in-progress record's lease is over. Without a lease end it lasts for as long as the record.
func (r record) over(now int64) bool {
	if r.until == nil {
		return r.forgotten(now)
	}
	return *r.until < now
}

// forgotten reports whether the retention is over. TTL deletes the record some time later.
func (r record) forgotten(now int64) bool { return r.expiration != nil && *r.expiration < now/1000 }

// refused turns the item of a refused acquire into its answer. again says that the record is free and is to be acquired
// with a fence above the returned one.
func (s *Store) refused(c dedup.Claim, r record) (l dedup.Lease, fence int64, again bool, err error) {
	standing := r.read(c.Owner, s.clock.taker(s.clock.look()), c.NoTakeover)
	foreign := r.owner == ""
	if foreign && standing != free { // counted when it is taken over
		s.meter.foreign.Add(1)
	}
	switch standing {
	case ours:
		// As it was granted, also where it is over by now: the holder renews it before it starts anything.
		s.meter.ownRetries.Add(1)
		l = newLease(c, r)
		l.OwnRetry, l.Until = true, s.clock.early(*r.until, unbounded)
		return l, 0, false, nil
	case lost:
		return dedup.Lease{}, 0, false, sqsonce.ErrLeaseLost
	case held:
		return dedup.Lease{}, 0, false, &dedup.InProgressError{Until: s.heldUntil(r), Foreign: foreign}
	case crashed:
		return dedup.Lease{}, 0, false, &dedup.InProgressError{Crashed: true, Foreign: foreign}
	case done:
		return dedup.Lease{}, 0, false, &dedup.CompletedError{Result: r.result, Foreign: foreign}
	default:
		if r.fence != nil {
			fence = *r.fence
		}
		return dedup.Lease{}, fence, true, nil
	}
}

// heldUntil is when another attempt makes sense, in the caller's clock: zero for a record that says nothing about it.
func (s *Store) heldUntil(r record) time.Time {
	switch {
	case r.until != nil:
		return s.clock.late(*r.until)
	case r.expiration != nil:
		return s.clock.late((*r.expiration + 1) * 1000) // compared in whole seconds
	default:
		return time.Time{}
	}
}

// lostTo is why a holder's write was refused. A record without an owner was put in the place of the holder's by a program
// that knows none; one that is gone may have been deleted by an operator.
func (s *Store) lostTo(found item) error {
	if r, err := decode(found); err == nil && r.owner == "" {
		s.meter.foreign.Add(1)
		return fmt.Errorf("%w: %w", sqsonce.ErrLeaseLost, dedup.ErrForeignWriter)
	}
	return sqsonce.ErrLeaseLost
}
