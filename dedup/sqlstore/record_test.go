package sqlstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// The cases of storetest that need hours of the store's clock. Here the record is moved into the past instead.
func TestRetention(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		c := claim("k", "a")
		c.Retention, c.Validation = 3*time.Hour, "old"
		a := mustAcquire(t, s, c)
		must.Do(t, s.Complete(t.Context(), a, dedup.Result{Data: []byte("old")}))
		age(t, b, "k", 3*time.Hour-time.Minute)
		if _, err := granted.Lease(s.Acquire(t.Context(), claim("k", "b"))); resultOf(err) != "completed" {
			t.Fatalf("just before the retention's end: got %s, want completed", resultOf(err))
		}
		age(t, b, "k", time.Minute+time.Second)
		l := mustAcquire(t, s, claim("k", "b"))
		if l.Fence <= a.Fence || l.Takeover {
			t.Errorf("after the retention's end: got %+v, want a greater fence than %d and no Takeover", l, a.Fence)
		}
		if r, err := s.Inspect(t.Context(), "k"); err != nil || len(r.Result.Data) > 0 || r.Result.Validation != "" {
			t.Errorf("taken after the retention's end: got %+v, %v, want nothing of the expired record", r, err)
		}
		mustComplete(t, s, l)
		if g, err := s.Acquire(t.Context(), claim("k", "c")); g.Verdict != dedup.VerdictCompleted || len(g.Result.Data) > 0 || g.Result.Validation != "" {
			t.Errorf("got %v with %+v, want completed without the expired record's result", err, g)
		}
	})
}

// A record is retained for an hour after its lease's end, whatever the claim's retention. A renewal shortens nothing.
func TestRetentionCoversTheLease(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		expect := func(when string, want time.Duration) {
			t.Helper()
			r := must.Get(s.Inspect(t.Context(), "k"))(t)
			if got := time.Until(r.ExpiresAt); got > want || got < want-time.Minute {
				t.Errorf("%s: the record is retained for %v, want %v", when, got, want)
			}
		}
		c := claim("k", "a")
		c.Retention, c.Lease = time.Second, 4*time.Hour
		l := mustAcquire(t, s, c)
		expect("a lease of 4 h", 5*time.Hour)
		for _, d := range []time.Duration{8 * time.Hour, time.Second} {
			l = must.Get(s.Renew(t.Context(), l, d))(t)
			expect("renewed to 8 h", 9*time.Hour)
		}
		must.Do(t, s.Release(t.Context(), l, nil))
		again := mustAcquire(t, s, func() dedup.Claim { c := c; c.Owner, c.ReceiveCount = "b", 2; return c }())
		expect("taken again for 4 h", 5*time.Hour)
		// Sweep deletes no lease that is longer than its retention.
		if n, err := s.Sweep(t.Context()); n != 0 || err != nil {
			t.Errorf("Sweep: got %d, %v, want nothing deleted", n, err)
		}
		mustComplete(t, s, again)
	})
}

// A record's fence is ahead of the database's clock, as after a failover to a server whose clock is behind.
func TestFenceAheadOfTheClock(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		must.Do(t, s.Release(t.Context(), mustAcquire(t, s, claim("k", "a")), nil))
		exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET fence = {now} + 100000000"))
		before := must.Get(s.Inspect(t.Context(), "k"))(t)
		if l := mustAcquire(t, s, claim("k", "b")); l.Fence != before.Fence+1 {
			t.Errorf("Fence after %d: got %d, want one more", before.Fence, l.Fence)
		}
	})
}

// A row that another program has changed is not a record: it is neither taken nor reported as completed.
func TestForeignRow(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		l := mustAcquire(t, s, claim("k", "a"))
		exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET status = 'EXPIRED', lease_until = 1"))
		if err := s.Reopen(t.Context(), dedup.Record{Lease: l}, "note"); !errors.Is(err, dedup.ErrRecord) {
			t.Errorf("Reopen: got error %v, want dedup.ErrRecord", err)
		}
		mustAcquire(t, s, claim("l", "a"))
		listed := ""
		for r, err := range s.List(t.Context()) {
			listed += fmt.Sprint(r.Key, " is no record: ", errors.Is(err, dedup.ErrRecord), "; ")
		}
		if want := "k is no record: true; l is no record: false; "; listed != want {
			t.Errorf("List: got %q, want %q", listed, want)
		}
		if b.kind.Dialect.OneWriter() { // others keep no text in the column
			exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET fence = 'seven' WHERE id = 'k'"))
		}
		if _, err := granted.Lease(s.Acquire(t.Context(), claim("k", "b"))); !errors.Is(err, dedup.ErrRecord) || kind(err) != "the rest" {
			t.Errorf("Acquire: got error %v, want dedup.ErrRecord, and neither unavailable nor misconfigured", err)
		}
		if _, err := s.Inspect(t.Context(), "k"); !errors.Is(err, dedup.ErrRecord) {
			t.Errorf("Inspect: got error %v, want dedup.ErrRecord", err)
		}
	})
}
