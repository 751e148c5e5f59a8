package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

// renewing is a store that does nothing but renewals.
type renewing struct {
	Store
	renew func(ctx context.Context, d time.Duration) (Lease, error)
}

func (s renewing) Renew(ctx context.Context, _ Lease, d time.Duration) (Lease, error) {
	return s.renew(ctx, d)
}

// leaseOf returns a record lease that is over after left.
func leaseOf(t *testing.T, left time.Duration, renew func(ctx context.Context, d time.Duration) (Lease, error), optFns ...func(*Options)) *recordLease {
	t.Helper()
	o := must.Get(New(renewing{renew: renew}, "billing", optFns...))(t)
	rl := newRecordLease(o, task{key: "k"})
	rl.lease.Until = time.Now().Add(left)
	return rl
}

// A lease is over at its end: the store lets another owner take over from then on.
func TestEndOfALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, left := range []time.Duration{0, 1} {
			if got := leaseOf(t, left, nil).live(); got != (left > 0) {
				t.Errorf("%s left: live %t", left, got)
			}
		}
	})
}

// At its end a lease is renewed before a commit, and where that fails there is none.
func TestStopRenewalAtTheEndOfALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, failure := range []error{nil, errors.New("store unreachable")} {
			renewals := 0
			rl := leaseOf(t, 0, func(_ context.Context, d time.Duration) (Lease, error) {
				renewals++
				return Lease{Until: time.Now().Add(d)}, failure
			})
			if _, err := rl.prepareCommit(t.Context(), 0); !errors.Is(err, failure) || (err == nil) != (failure == nil) || renewals != 1 {
				t.Errorf("got error %v after %d renewals, want %v after 1", err, renewals, failure)
			}
		}
	})
}

func TestTimeoutOfARenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ lease, call, want time.Duration }{
			{30 * time.Second, 5 * time.Second, 5 * time.Second},
			{9 * time.Second, 5 * time.Second, 3 * time.Second},
		} {
			rl := leaseOf(t, tt.lease, func(ctx context.Context, _ time.Duration) (Lease, error) {
				if deadline, _ := ctx.Deadline(); time.Until(deadline) != tt.want {
					t.Errorf("lease of %s: timeout of %s, want %s", tt.lease, time.Until(deadline), tt.want)
				}
				return Lease{}, nil
			}, func(o *Options) { o.LeaseDuration, o.CallTimeout = tt.lease, tt.call })
			if _, err := rl.callRenew(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
