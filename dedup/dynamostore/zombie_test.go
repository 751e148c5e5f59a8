package dynamostore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// No condition can refuse a copy that finds no record. No handler runs, and the key is blocked for one lease.
func TestDelayedCopyOnADeletedRecordIsAGhostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		s := b.store()
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.Replay, Delay: 20 * time.Second})
		b.complete(s, b.acquire(s, claim("a")))
		if err := s.Delete(t.Context(), testKey); err != nil {
			t.Fatal(err)
		}
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
