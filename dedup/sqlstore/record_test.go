package sqlstore

import (
	"context"
	"errors"
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
		c.Retention = 3 * time.Hour
		a := mustAcquire(t, s, c)
		must.Do(t, s.Complete(t.Context(), a, dedup.Result{Data: []byte("old"), Validation: "old"}))
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

// A table that refuses a result, like one with a shorter column, gets the record without it: the effect does not happen again.
func TestRefusedResult(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		exec(t, b.DB, b.Dialect.sql("ALTER TABLE {records} ADD CONSTRAINT short CHECK (length(result) < 8)"))
		once := must.Get(dedup.New(newStore(t, b), "billing"))(t)
		effects := 0
		for _, want := range []error{nil, dedup.ErrNoResult} {
			_, err := dedup.Do(t.Context(), once, "order-1", func(context.Context) (string, error) { effects++; return "a long result", nil })
			if !errors.Is(err, want) || effects != 1 {
				t.Errorf("got error %v and %d effects, want %v and 1", err, effects, want)
			}
		}
	})
}
