package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Acquire implements [dedup.Store].
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Lease, error) {
	if err := checkNames("Claim.Key", c.Key, "Claim.Owner", c.Owner); err != nil {
		return dedup.Lease{}, err
	}
	if err := s.ensureChecked(ctx); err != nil {
		return dedup.Lease{}, err
	}
	var r *reply
	unknown, err := retry(ctx, func() (err error) {
		r, err = s.run(ctx, acquireScript, c.Key, c.Owner, c.Lease.Milliseconds(), c.Retention.Milliseconds(), c.Attempt, flag(c.NoTakeover))
		return err
	})
	if err != nil {
		return dedup.Lease{}, acquireError(err, unknown)
	}
	l, err := readLease(c, r)
	if r.err != nil {
		return dedup.Lease{}, acquireError(r.err, errors.Is(r.err, errReply))
	}
	return l, err
}

func acquireError(err error, unknown bool) error {
	err = explain("acquire", err)
	if unknown {
		err = fmt.Errorf("%w: %w", dedup.ErrOutcomeUnknown, err)
	}
	return err
}

// readLease returns the lease of an acquire's reply, or the reason why there is none. If the reply cannot be read, r.err
// is set.
func readLease(c dedup.Claim, r *reply) (dedup.Lease, error) {
	switch r.status() {
	case "granted", "own":
		own := r.status() == "own"
		return dedup.Lease{
			Key: c.Key, Owner: c.Owner, Fence: r.number(1), Until: r.ownerEnd(2), LastError: r.text(3),
			Takeover: !own && r.number(4) == 1, OwnRetry: own,
			Retention: c.Retention, Attempts: c.Attempt, Validation: c.Validation,
		}, nil
	case "completed":
		return dedup.Lease{}, &dedup.CompletedError{Result: dedup.Result{Data: r.bytes(1), Validation: r.text(2)}}
	case "leased":
		return dedup.Lease{}, &dedup.InProgressError{Until: r.othersEnd(1)}
	case "crashed":
		return dedup.Lease{}, &dedup.InProgressError{Crashed: true}
	case "lost":
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	r.err = r.unexpected()
	return dedup.Lease{}, r.err
}
