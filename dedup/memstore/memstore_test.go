package memstore_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/dedup/storetest"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/limittest"
	"github.com/sqsonce/sqsonce/limit"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		New: func(*testing.T) dedup.Store { return memstore.New() },
	})
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		New: func(*testing.T) dedup.Store { return memstore.New() },
		Attributes: &storetest.Attributes{
			Of: func(_ context.Context, s dedup.Store, key string) (map[string]string, error) {
				return s.(*memstore.Store).Attributes(key), nil
			},
		},
	})
}

func claim(key, owner string) dedup.Claim {
	return dedup.Claim{Key: key, Owner: owner, Lease: time.Minute, Retention: 2 * time.Hour, ReceiveCount: 2}
}

// storetest inspects records; only the store's own Delete is left.
func TestDelete(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := memstore.New()
	must.Do(t, s.Check(ctx))
	must.Get(granted.Lease(s.Acquire(ctx, claim("k", "a"))))(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Delete(ended, "k"); err == nil {
		t.Error("Delete with an ended context: got nil, want an error")
	}
	for range 2 {
		must.Do(t, s.Delete(ctx, "k"))
	}
	if l, err := granted.Lease(s.Acquire(ctx, claim("k", "c"))); err != nil || l.Takeover {
		t.Errorf("after a delete: got %+v, %v, want a new lease", l, err)
	}
}

// The store copies the result when it stores it and when it returns it.
func TestResultIsCopied(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	l := must.Get(granted.Lease(s.Acquire(t.Context(), claim("k", "a"))))(t)
	data := []byte("1")
	must.Do(t, s.Complete(t.Context(), l, dedup.Result{Data: data}))
	data[0] = 'x'
	for range 2 {
		done, err := s.Acquire(t.Context(), claim("k", "b"))
		if done.Verdict != dedup.VerdictCompleted || string(done.Result.Data) != "1" {
			t.Fatalf("got error %v with %+v, want the first result", err, done)
		}
		done.Result.Data[0] = 'y'
	}
}

// The number of records in memory depends on what is retained, not on what was ever stored.
func TestExpiredRecordsAreDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		for i := range 20_000 {
			time.Sleep(10 * time.Second) // 720 acquires per retention
			must.Get(granted.Lease(s.Acquire(t.Context(), claim(fmt.Sprint(i), "a"))))(t)
			if n := s.Len(); n > 2048 {
				t.Fatalf("%d records in memory after %d acquires, and 720 of them are retained", n, i)
			}
		}
	})
}

func TestCounter(t *testing.T) {
	t.Parallel()
	limittest.Run(t, limittest.Harness{
		New: func(*testing.T) func() limit.Counter {
			s := memstore.New()
			return func() limit.Counter { return memstore.NewCounter(s) }
		},
		Store: func(c limit.Counter) dedup.Lister { return memstore.CounterStore(c) },
		Delete: func(ctx context.Context, c limit.Counter, record string) error {
			return memstore.CounterStore(c).Delete(ctx, record)
		},
	})
}
