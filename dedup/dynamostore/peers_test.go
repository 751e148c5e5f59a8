package dynamostore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
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
			if _, err := s.Acquire(b.Context(), c); !errors.Is(err, sqsonce.ErrInProgress) {
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

// The latest owners are peers until they leave, or their leases end.
func TestLatestPeers(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for _, c := range []struct {
		name string
		do   func(*peers)
		want bool
	}{
		{"nobody", func(*peers) {}, false},
		{"only itself", func(c *peers) { c.enter("me", start.Add(1)) }, false},
		{"itself twice", func(c *peers) { c.enter("me", start.Add(1)); c.enter("me", start.Add(2)) }, false},
		{"another before", func(c *peers) { c.enter("a", start.Add(1)); c.enter("me", start.Add(1)) }, true},
		{"another after", func(c *peers) { c.enter("me", start.Add(1)); c.enter("a", start.Add(1)) }, true},
		{"another has left", func(c *peers) { c.enter("a", start.Add(1)); c.enter("me", start.Add(1)); c.leave("a") }, false},
		{"another has ended", func(c *peers) { c.enter("a", start); c.enter("me", start.Add(1)) }, false},
		{"the latest have left", func(c *peers) {
			for _, o := range []string{"me", "a", "b", "c"} {
				c.enter(o, start.Add(1))
			}
			c.leave("b")
			c.leave("c")
		}, true},
		{"the latest have ended", func(c *peers) {
			c.enter("a", start.Add(1))
			c.enter("b", start)
			c.enter("c", start)
		}, true},
		{"renewed, and has left", func(c *peers) { c.enter("a", start.Add(1)); c.enter("a", start.Add(2)); c.leave("a") }, false},
		{"eight came later, and have left", func(c *peers) {
			c.enter("a", start.Add(1))
			for i := range len(c.latest) {
				c.enter(fmt.Sprint(i), start.Add(1))
			}
			for i := range len(c.latest) {
				c.leave(fmt.Sprint(i))
			}
		}, false},
		{"many came later, one after the other", func(c *peers) {
			c.enter("a", start.Add(1))
			for i := range 100 {
				c.enter(fmt.Sprint(i), start.Add(1))
				c.leave(fmt.Sprint(i))
			}
		}, true},
		{"renewed", func(c *peers) { c.enter("a", start); c.enter("b", start); c.enter("a", start.Add(1)) }, true},
	} {
		var at peers
		c.do(&at)
		if got := at.others("me", start); got != c.want {
			t.Errorf("%s: others: %t, want %t", c.name, got, c.want)
		}
	}
}
