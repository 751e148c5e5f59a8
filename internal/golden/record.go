package golden

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Keys of the records that WriteRecords has a store write.
const (
	Done     = "billing#done"
	Busy     = "billing#in progress"
	Released = "billing#released"
)

const (
	lease     = time.Hour
	retention = 24 * time.Hour
	failure   = "card declined"
)

var result = dedup.Result{Data: []byte(`{"id":1}`), Validation: "hash"}

// Store is a store with Inspect.
type Store interface {
	dedup.Store
	Inspect(ctx context.Context, key string) (dedup.Record, error)
}

// WriteRecords has s write a record of each kind, now.
func WriteRecords(t *testing.T, s Store) {
	t.Helper()
	done := acquire(t, s, claim(Done, "first"))
	if err := s.Complete(t.Context(), done, result); err != nil {
		t.Fatal(err)
	}
	acquire(t, s, claim(Busy, "first"))
	if err := s.Release(t.Context(), acquire(t, s, claim(Released, "first")), errors.New(failure)); err != nil {
		t.Fatal(err)
	}
}

// CheckRecords checks that s finds what WriteRecords of another version wrote a moment ago. age lets time pass for a record.
func CheckRecords(t *testing.T, s Store, age func(key string, by time.Duration)) {
	t.Helper()
	done, err := s.Acquire(t.Context(), claim(Done, "second"))
	if done.Verdict != dedup.VerdictCompleted || done.Foreign || !bytes.Equal(done.Result.Data, result.Data) || done.Result.Validation != result.Validation {
		t.Errorf("completed record: got %+v and error %v, want it completed with %+v", done, err, result)
	}
	inProgress, err := s.Acquire(t.Context(), claim(Busy, "second"))
	if inProgress.Verdict != dedup.VerdictInProgress || inProgress.Foreign || (time.Until(inProgress.Until)-lease).Abs() > 5*time.Minute {
		t.Errorf("record in progress: got %+v and error %v, want it in progress for an hour", inProgress, err)
	}
	released, busy := fence(t, s, Released), fence(t, s, Busy)
	if l := acquire(t, s, claim(Released, "second")); l.Takeover || l.LastError != failure || l.Fence <= released {
		t.Errorf("released record: got %+v, want no takeover, error %q and a fence above %d", l, failure, released)
	}
	age(Busy, lease+10*time.Minute)
	if l := acquire(t, s, claim(Busy, "third")); !l.Takeover || l.Fence <= busy {
		t.Errorf("record in progress whose lease has ended: got %+v, want a takeover and a fence above %d", l, busy)
	}
	age(Done, retention+10*time.Minute)
	if l := acquire(t, s, claim(Done, "third")); l.Takeover {
		t.Errorf("record whose retention has ended: got %+v, want no takeover", l)
	}
}

func claim(key, owner string) dedup.Claim {
	return dedup.Claim{Key: key, Owner: owner, Lease: lease, Retention: retention, ReceiveCount: 2}
}

func acquire(t *testing.T, s Store, c dedup.Claim) dedup.Lease {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	if g.Verdict != dedup.VerdictGranted || g.Foreign {
		t.Fatalf("Acquire of %q by %s: got %+v and error %v, want a lease", c.Key, c.Owner, g, err)
	}
	return g.Lease
}

func fence(t *testing.T, s Store, key string) int64 {
	t.Helper()
	r, err := s.Inspect(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if r.Owner != "first" || r.ReceiveCount != 2 || r.Fence <= 0 {
		t.Errorf("Inspect of %q: got %+v, want owner, attempts and fence of the golden record", key, r)
	}
	return r.Fence
}
