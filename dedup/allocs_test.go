//go:build !race

package dedup_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// granting is a store that grants every claim.
type granting struct{ dedup.Store }

func (granting) Acquire(_ context.Context, c dedup.Claim) (dedup.Lease, error) {
	return dedup.Lease{Key: c.Key, Owner: c.Owner, Fence: 1, Until: time.Now().Add(c.Lease)}, nil
}

func (granting) Complete(context.Context, dedup.Lease, dedup.Result) error { return nil }
func (granting) Release(context.Context, dedup.Lease, error) error         { return nil }

// Without hooks a delivery allocates what it did before there were hooks.
func TestAllocationsWithoutHooks(t *testing.T) {
	runs := newOnce(t, granting{}, noCache).Handler(hang(0))
	duplicate := newOnce(t, granting{}).Handler(hang(0))
	fails := newOnce(t, granting{}).Handler(func(context.Context, *sqsonce.Message) error { return errStore })
	ctx, m := t.Context(), message("1")
	for _, tt := range []struct {
		name string
		h    sqsonce.Handler
		most float64
	}{{"runs", runs, 21}, {"duplicate in memory", duplicate, 7}, {"fails", fails, 21}} {
		if got := testing.AllocsPerRun(1000, func() { _ = tt.h(ctx, m) }); got > tt.most {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.most)
		}
	}
}
