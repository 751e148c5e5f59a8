package dynamostore

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A delivery without peers does not wait, and needs no permission for statements.
func TestNoLingerWithoutPeers(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
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
			must.Do(b, s.commit(b.Context(), b.acquire(s, c), dedup.Result{}, nil))
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
			must.Do(b, b.store().Delete(b.Context(), c.Key, func(o *dedup.DeleteOptions) { o.Force = true }))
			if err := s.Complete(b.Context(), l, dedup.Result{}); !errors.Is(err, sqsonce.ErrLeaseLost) {
				b.Fatal(err)
			}
		}, false},
	} {
		runBed(t, c.name, func(t *testing.T, b *bed) {
			s := b.store(func(o *Options) { o.Linger = time.Second })
			claims := claimsOf(2)
			c.other(b, s, claims[0])
			start := time.Now()
			b.acquire(s, claims[1])
			if waited := time.Since(start) != 0; waited != c.want {
				t.Errorf("Acquire beside another: waited %t, want %t", waited, c.want)
			}
		})
	}
}

// No condition can refuse a copy that finds no record. No handler runs, and the key is blocked for one lease.
func TestDelayedCopyOnADeletedRecordIsAGhostLease(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.Replay, Delay: 20 * time.Second})
		b.complete(s, b.acquire(s, claim("a")))
		must.Do(t, s.Delete(t.Context(), testKey))
		time.Sleep(30 * time.Second)
		g, err := s.Acquire(t.Context(), claim("b"))
		if g.Verdict != dedup.VerdictInProgress {
			t.Fatalf("Acquire after a delayed copy on a deleted record: got %+v and error %v, want in progress", g, err)
		}
		time.Sleep(time.Until(g.Until) + time.Second)
		b.acquire(s, claim("b"))
	})
}

func (b *bed) release(s *Store, l dedup.Lease) {
	b.Helper()
	if err := s.Release(b.Context(), l, errors.New("failed")); err != nil {
		b.Fatalf("Release by %s: got error %v, want nil", l.Owner, err)
	}
}

func (b *bed) renew(s *Store, l dedup.Lease, d time.Duration) dedup.Lease {
	b.Helper()
	l, err := s.Renew(b.Context(), l, d)
	if err != nil {
		b.Fatalf("Renew by %s: got error %v, want a lease", l.Owner, err)
	}
	return l
}

// unknownLease is what dedup knows of a claim whose acquire had an unknown outcome.
func unknownLease(owner string) dedup.Lease {
	c := claim(owner)
	return dedup.Lease{Key: c.Key, Owner: c.Owner, Retention: c.Retention}
}

// The release of an acquire with an unknown outcome leaves a released record that refuses the acquire, with a greater fence.
// It changes no record of another owner that is live, completed, or of a holder that crashed.
func TestReleaseOfAnUnknownAcquire(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(*bed, *Store)
		ours   bool // afterwards
		calls  int
	}{
		{"no record", func(*bed, *Store) {}, true, 2},
		{"released by another", func(b *bed, s *Store) { b.release(s, b.acquire(s, claim("other"))) }, true, 2},
		{"released by another, whose clock was ahead", func(b *bed, _ *Store) {
			ahead := b.store(off(time.Minute))
			b.release(ahead, b.acquire(ahead, claim("other")))
		}, true, 2},
		{"written", func(b *bed, s *Store) { b.acquire(s, claim("a")) }, true, 1},
		{"held by another", func(b *bed, s *Store) { b.acquire(s, claim("other")) }, false, 1},
		{"another crashed", func(b *bed, s *Store) {
			b.acquire(s, claim("other"))
			time.Sleep(2 * lease)
		}, false, 1},
		{"completed by another", func(b *bed, s *Store) { b.complete(s, b.acquire(s, claim("other"))) }, false, 1},
		{"not a record", func(b *bed, _ *Store) { b.foreign(values{attrStatus: text("EXPIRED")}) }, false, 1},
	} {
		runStore(t, tt.name, func(t *testing.T, b *bed, s *Store) {
			if _, err := s.Inspect(t.Context(), testKey); !errors.Is(err, dedup.ErrNotFound) { // the clock learns the time
				t.Fatal(err)
			}
			tt.before(b, s)
			before, sent := b.item(testTable), len(b.srv.Calls())
			err := s.Release(t.Context(), unknownLease("a"), errors.New("given up"))
			after := b.item(testTable)
			if got := len(b.ops(sent)); got != tt.calls {
				t.Errorf("%d requests, want %d", got, tt.calls)
			}
			if !tt.ours {
				if !errors.Is(err, sqsonce.ErrLeaseLost) || !cmp.Equal(before, after) {
					t.Errorf("got error %v and record %v, want ErrLeaseLost and %v", err, after, before)
				}
				return
			}
			if err != nil || after[attrOwner] != "a" || after[attrUntil] != "0" || after[attrStatus] != inProgress {
				t.Fatalf("got error %v and record %v, want it released by a", err, after)
			}
			if was, is := numberIn(t, before, attrFence), numberIn(t, after, attrFence); is < was || is == 0 {
				t.Errorf("fence: got %d after %d, want it to grow", is, was)
			}
			if end := numberIn(t, after, TTLAttribute); end < time.Now().Add(claim("a").Retention).Unix() {
				t.Errorf("end of retention: got %d, want that of an acquire", end)
			}
			if _, err := granted.Lease(s.Acquire(t.Context(), claim("a"))); !errors.Is(err, sqsonce.ErrLeaseLost) {
				t.Errorf("the acquire, when it is carried out: got error %v, want ErrLeaseLost", err)
			}
			b.acquire(b.store(), claim("b"))
		})
	}
}

func numberIn(t *testing.T, record map[string]string, attribute string) int64 {
	t.Helper()
	if record == nil {
		return 0
	}
	n := must.Get(strconv.ParseInt(record[attribute], 10, 64))(t)
	return n
}

// A copy of that release, which the network delivers late, hides no crash.
func TestReleasedFromTheStartTakesNothingOver(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&refusalCounter{}, testTable))(t)
	if got := s.acquireInput(s.releasedFromTheStart(unknownLease("a"), 0)).ConditionExpression; got != acquireReleasedExpr.condition {
		t.Errorf("condition: got %s, want that of an acquire without takeovers", *got)
	}
}
