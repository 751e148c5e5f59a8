package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Acquire implements [dedup.Store].
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if err := checkNames("Claim.Key", c.Key, "Claim.Owner", c.Owner); err != nil {
		return dedup.Grant{}, err
	}
	if err := s.ensureChecked(ctx); err != nil {
		return dedup.Grant{}, err
	}
	r, unknown, err := s.acquire(ctx, c)
	if err != nil {
		return dedup.Grant{}, acquireError(err, unknown)
	}
	g := readGrant(c, r)
	if r.err != nil {
		return dedup.Grant{}, acquireError(r.err, errors.Is(r.err, errReply))
	}
	return g, nil
}

const (
	// maxAge is how old a request of an acquire may be when the server executes it. For so long an acquire that was given up
	// may still be granted: see Release.
	maxAge = 2 * time.Second
	// lateTries is how often an acquire is sent that the server refuses as late.
	lateTries = 3
)

var errLate = errors.New("the request came late each time: the server, or the network to it, is too slow")

// acquire sends a claim until it is answered. A server that has stalled executes the requests that it received meanwhile,
// perhaps after the release of a caller that gave up. So every request says when it was sent, in the server's time, and the
// server refuses one that is older than its caller's patience. It also refuses one whose sender does not know its time, or
// knows another server's. Its refusal tells the time, and the claim is sent again at once.
func (s *Store) acquire(ctx context.Context, c dedup.Claim) (r *reply, unknown bool, err error) {
	for range lateTries {
		clock, sent := s.clock.Load(), int64(0)
		noReply, err := retry(ctx, func() (err error) {
			sent = clock.now(look())
			r, err = s.run(ctx, acquireScript, c.Key, c.Owner, c.Lease.Milliseconds(), c.Retention.Milliseconds(), c.ReceiveCount,
				flag(c.NoTakeover), sent, patience(ctx).Milliseconds())
			return err
		})
		unknown = unknown || noReply
		if err != nil {
			return nil, unknown, err
		}
		switch r.status() {
		case "granted":
			s.clock.Store(clock.newer(reading{server: r.number(5), at: r.at}, sent))
			return r, unknown, nil
		case "late":
			s.clock.Store(clock.newer(reading{server: r.number(1), at: r.at}, sent))
		default:
			return r, unknown, nil
		}
	}
	return nil, unknown, errLate
}

// patience is how long the caller waits for a reply, and at most maxAge.
func patience(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(maxAge, time.Until(deadline))
	}
	return maxAge
}

func acquireError(err error, unknown bool) error {
	err = explain("acquire", err)
	if unknown {
		err = fmt.Errorf("%w: %w", dedup.ErrOutcomeUnknown, err)
	}
	return err
}

// readGrant returns the verdict of an acquire's reply. If the reply cannot be read, r.err is set.
func readGrant(c dedup.Claim, r *reply) dedup.Grant {
	switch r.status() {
	case "granted", "own":
		l := dedup.Lease{
			Key: c.Key, Owner: c.Owner, Fence: r.number(1), Until: r.ownerEnd(2), LastError: r.text(3),
			Retention: c.Retention, ReceiveCount: c.ReceiveCount,
		}
		if l.OwnRetry = r.status() == "own"; !l.OwnRetry {
			l.TakenFrom = r.number(4)
			l.Takeover, l.TakenOwner = l.TakenFrom > 0, r.text(6)
		}
		return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l}
	case "completed":
		return dedup.Grant{Verdict: dedup.VerdictCompleted, Result: dedup.Result{Data: r.bytes(1), Validation: r.text(2)}}
	case "leased":
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: r.othersEnd(1)}
	case "crashed":
		return dedup.Grant{Verdict: dedup.VerdictCrashed}
	case "lost":
		return dedup.Grant{Verdict: dedup.VerdictLost}
	}
	r.err = r.unexpected()
	return dedup.Grant{}
}
