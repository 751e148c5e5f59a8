package sqlstore

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

func newStore(t testing.TB, b *Bed, optFns ...func(*Options)) *Store {
	t.Helper()
	return storeOn(t, b.DB, b.Dialect, optFns...)
}

func storeOn(t testing.TB, db *sql.DB, d Dialect, optFns ...func(*Options)) *Store {
	t.Helper()
	s, err := New(db, d, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// claim is a first delivery's request, with a lease that does not end in a test.
func claim(key, owner string) dedup.Claim {
	return dedup.Claim{Key: key, Owner: owner, Lease: time.Hour, Retention: 24 * time.Hour, Attempt: 1}
}

func mustAcquire(t testing.TB, s dedup.Store, c dedup.Claim) dedup.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatalf("Acquire by %s: %v", c.Owner, err)
	}
	return l
}

func mustComplete(t testing.TB, s dedup.Store, l dedup.Lease) {
	t.Helper()
	if err := s.Complete(t.Context(), l, dedup.Result{}); err != nil {
		t.Fatalf("Complete by %s: %v", l.Owner, err)
	}
}

// outcomeOf names what an acquire answered.
func outcomeOf(err error) string {
	_, inProgress := errors.AsType[*dedup.InProgressError](err)
	_, completed := errors.AsType[*dedup.CompletedError](err)
	switch {
	case err == nil:
		return "acquired"
	case inProgress:
		return "in progress"
	case completed:
		return "completed"
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return "lost"
	default:
		return "error: " + err.Error()
	}
}

// age moves a record's times into the past, as if it had been written then.
func age(t testing.TB, b *Bed, key string, by time.Duration) {
	t.Helper()
	ms := by.Milliseconds()
	exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET lease_until = CASE WHEN lease_until = 0 THEN 0 ELSE lease_until - ? END,"+
		" expires_at = expires_at - ? WHERE id = ?"), ms, ms, key)
}

func replaceUser(dsn, old, name string) string { return strings.Replace(dsn, old+"@", name+"@", 1) }
