package dynamostore

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// A delivery without peers does not wait, and needs no permission for statements.
func TestNoLingerWithoutPeers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		s := b.store(func(o *Options) { o.Linger = time.Second })
		sent, start := len(b.srv.Calls()), time.Now()
		for _, c := range claimsOf(3) { // one after the other
			b.complete(s, b.acquire(s, c))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("three events one after the other took %s, want no wait", took)
		}
		if got, want := b.ops(sent), slices.Repeat([]string{"UpdateItem"}, 6); !cmp.Equal(got, want) {
			t.Errorf("calls: got %v, want %v", got, want)
		}
	})
}

// An owner that has ended, or whose lease is over, is no peer. A holder that renews its lease is one.
func TestWhoIsAPeer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		other func(*bed, *Store, dedup.Claim)
		want  bool
	}{
		{"holds", func(b *bed, s *Store, c dedup.Claim) { b.acquire(s, c) }, true},
		{"has crashed", func(b *bed, s *Store, c dedup.Claim) { b.acquire(s, c); time.Sleep(2 * lease) }, false},
		{"has renewed", func(b *bed, s *Store, c dedup.Claim) {
			l := b.acquire(s, c)
			time.Sleep(lease / 2)
			b.renew(s, l, lease)
			time.Sleep(lease * 3 / 4)
		}, true},
		{"has completed", func(b *bed, s *Store, c dedup.Claim) { b.complete(s, b.acquire(s, c)) }, false},
		{"has released", func(b *bed, s *Store, c dedup.Claim) { b.release(s, b.acquire(s, c)) }, false},
		{"has committed", func(b *bed, s *Store, c dedup.Claim) {
			if err := s.commit(b.Context(), b.acquire(s, c), nil); err != nil {
				b.Fatal(err)
			}
		}, false},
		{"was refused", func(b *bed, s *Store, c dedup.Claim) {
			b.acquire(b.store(), c)
			c.Owner = "refused"
			if _, err := granted.Lease(s.Acquire(b.Context(), c)); !errors.Is(err, sqsonce.ErrInProgress) {
				b.Fatal(err)
			}
		}, false},
		{"was lost", func(b *bed, s *Store, c dedup.Claim) {
			l := b.acquire(s, c)
			if err := b.store().Delete(b.Context(), c.Key, func(o *DeleteOptions) { o.Force = true }); err != nil {
				b.Fatal(err)
			}
			if err := s.Complete(b.Context(), l, dedup.Result{}); !errors.Is(err, sqsonce.ErrLeaseLost) {
				b.Fatal(err)
			}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				s := b.store(func(o *Options) { o.Linger = time.Second })
				claims := claimsOf(2)
				c.other(b, s, claims[0])
				start := time.Now()
				b.acquire(s, claims[1])
				if waited := time.Since(start) != 0; waited != c.want {
					t.Errorf("Acquire beside another: waited %t, want %t", waited, c.want)
				}
			})
		})
	}
}
