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

// Whoever is alone does not wait for others, and needs no permission for statements.
func TestAloneThereIsNoLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		s := b.store(func(o *Options) { o.Linger = time.Second })
		sent, start := len(b.srv.Calls()), time.Now()
		for _, c := range crowd(3) { // one after the other
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

// Whoever has ended, or vanished, is nobody to wait for; a holder that renews its lease is.
func TestWhoIsCompany(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		other func(*bed, *Store, dedup.Claim)
		want  bool
	}{
		{"holds", func(b *bed, s *Store, c dedup.Claim) { b.acquire(s, c) }, true},
		{"has vanished", func(b *bed, s *Store, c dedup.Claim) { b.acquire(s, c); time.Sleep(2 * lease) }, false},
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
				claims := crowd(2)
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

// Whoever is among the latest is company, as long as it is there and alive.
func TestLatestCompany(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for _, c := range []struct {
		name string
		do   func(*company)
		want bool
	}{
		{"nobody", func(*company) {}, false},
		{"only itself", func(c *company) { c.enter("me", start.Add(1)) }, false},
		{"itself twice", func(c *company) { c.enter("me", start.Add(1)); c.enter("me", start.Add(2)) }, false},
		{"another before", func(c *company) { c.enter("a", start.Add(1)); c.enter("me", start.Add(1)) }, true},
		{"another after", func(c *company) { c.enter("me", start.Add(1)); c.enter("a", start.Add(1)) }, true},
		{"another has left", func(c *company) { c.enter("a", start.Add(1)); c.enter("me", start.Add(1)); c.leave("a") }, false},
		{"another has ended", func(c *company) { c.enter("a", start); c.enter("me", start.Add(1)) }, false},
		{"the latest have left", func(c *company) {
			for _, o := range []string{"me", "a", "b", "c"} {
				c.enter(o, start.Add(1))
			}
			c.leave("b")
			c.leave("c")
		}, true},
		{"the latest have ended", func(c *company) {
			c.enter("a", start.Add(1))
			c.enter("b", start)
			c.enter("c", start)
		}, true},
		{"renewed, and has left", func(c *company) { c.enter("a", start.Add(1)); c.enter("a", start.Add(2)); c.leave("a") }, false},
		{"more than are known came later, and have left", func(c *company) {
			c.enter("a", start.Add(1))
			for i := range len(c.latest) {
				c.enter(fmt.Sprint(i), start.Add(1))
			}
			for i := range len(c.latest) {
				c.leave(fmt.Sprint(i))
			}
		}, false},
		{"many came later, one after the other", func(c *company) {
			c.enter("a", start.Add(1))
			for i := range 100 {
				c.enter(fmt.Sprint(i), start.Add(1))
				c.leave(fmt.Sprint(i))
			}
		}, true},
		{"renewed", func(c *company) { c.enter("a", start); c.enter("b", start); c.enter("a", start.Add(1)) }, true},
	} {
		var at company
		c.do(&at)
		if got := at.others("me", start); got != c.want {
			t.Errorf("%s: others: %t, want %t", c.name, got, c.want)
		}
	}
}
