package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// refused turns the record that refused an acquire into the answer to the acquire. A record that is free was refused by the fence
// alone, or by time clauses that were off: it is acquired again.
func (s *Store) refused(c dedup.Claim, found item) (_ dedup.Grant, isFree bool, _ error) {
	r, err := decode(found) // an implementation that returns no item with a refusal: dedup.ErrRecord
	if err != nil {
		return dedup.Grant{}, false, s.explain("acquire", err)
	}
	state := r.read(c.Owner, s.clock.taker(s.clock.look()), c.NoTakeover)
	if err := s.checkTime(); err != nil {
		return dedup.Grant{}, false, gaveUp(state == ours, err)
	}
	if state == free {
		return dedup.Grant{}, true, nil
	}
	return s.refuse(c, r, state), false, nil
}

// fenceOf is the fence of a record that refused an acquire; 0: there is none.
func fenceOf(found item) int64 {
	r, err := decode(found)
	if err != nil {
		return 0
	}
	return valueOf(r.fence)
}

// grant answers an acquire that was written. old is the item as it was before; nil: there was none.
//
// Where less than half of the lease is left, it is renewed first: the answer was slow, or it brought the first Date, by
// which the host's clock is behind and has asked for a lease that is nearly over. A holder renews at a third of its
// lease, which would be too late. A renewal that is refused says that another owner took over in the meantime.
func (s *Store) grant(ctx context.Context, a acquisition, old item) (dedup.Grant, error) {
	if err := s.checkTime(); err != nil {
		return dedup.Grant{}, gaveUp(true, err)
	}
	var before record
	// An item without a status meets only the first clause, so there was no record: some implementations of the API return
	// the key then, where DynamoDB returns nothing.
	if old[attrStatus] != nil {
		var err error
		if before, err = decode(old); err != nil {
			return dedup.Grant{}, gaveUp(true, s.explain("acquire", err))
		}
	}
	g, enough := s.granted(a, before)
	if enough {
		return g, nil
	}
	renewed, err := s.Renew(ctx, g.Lease, a.claim.Lease)
	switch {
	case err == nil:
		g.Lease = renewed
		return g, nil
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return dedup.Grant{Verdict: dedup.VerdictLost, Foreign: errors.Is(err, dedup.ErrForeignWriter)}, nil
	case s.clock.ahead(a.until):
		return g, nil // shorter than asked for, but live: the holder renews it next
	default:
		return dedup.Grant{}, gaveUp(true, err)
	}
}

// granted is the grant of an acquire that was written over a record, and whether more than half of its lease is left.
func (s *Store) granted(a acquisition, before record) (_ dedup.Grant, enough bool) {
	c := a.claim
	l := newLease(c, a.fence, before.kept.LastError)
	l.OwnRetry = before.status == inProgress && before.owner == c.Owner
	if l.OwnRetry {
		s.meter.ownRetries.Add(1)
	}
	l.Takeover = before.status == inProgress && !l.OwnRetry && (before.until == nil || *before.until > 0)
	if l.Takeover {
		l.TakenFrom, l.TakenOwner = valueOf(before.fence), before.owner
	}
	foreign := before.status != "" && before.owner == ""
	if foreign {
		s.meter.foreign.Add(1)
	}
	end, left := s.clock.end(a.until, c.Lease)
	l.Until = end
	return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l, Foreign: foreign}, left > c.Lease/2
}

// newLease is the claim's lease, without its end.
func newLease(c dedup.Claim, fence int64, lastError string) dedup.Lease {
	return dedup.Lease{
		Key: c.Key, Owner: c.Owner, Fence: fence, Retention: c.Retention,
		ReceiveCount: c.ReceiveCount, LastError: lastError,
	}
}

// refuse turns the record that refused an acquire, and is not free, into the answer to the acquire.
func (s *Store) refuse(c dedup.Claim, r record, state recordState) dedup.Grant {
	foreign := r.owner == ""
	if foreign {
		s.meter.foreign.Add(1)
	}
	switch state {
	case ours:
		// The lease as it was granted, even if it has ended by now. Its holder renews it before it starts anything.
		s.meter.ownRetries.Add(1)
		l := newLease(c, valueOf(r.fence), r.kept.LastError)
		l.OwnRetry, l.Until = true, s.clock.early(*r.until, unbounded)
		return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l}
	case released:
		return dedup.Grant{Verdict: dedup.VerdictLost}
	case crashed:
		return dedup.Grant{Verdict: dedup.VerdictCrashed, Foreign: foreign}
	case done:
		return dedup.Grant{Verdict: dedup.VerdictCompleted, Result: r.kept.Result, Foreign: foreign}
	case live:
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: s.liveUntil(r), Foreign: foreign}
	case free:
	}
	return dedup.Grant{} // no answer: see refused
}

// liveUntil is the time from which another acquire makes sense, by the host's clock. It is zero if the record does
// not say.
func (s *Store) liveUntil(r record) time.Time {
	switch {
	case r.until != nil:
		return s.clock.late(*r.until)
	case r.expiration != nil:
		return s.clock.late((*r.expiration + 1) * 1000) // it is compared in whole seconds
	default:
		return time.Time{}
	}
}
