package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// blocked begins a transaction that writes the key, so that every INSERT of the key waits.
func blocked(t *testing.T, b *Bed, key string) *sql.Tx {
	t.Helper()
	tx := must.Get(b.DB.BeginTx(t.Context(), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	must.Get(tx.ExecContext(t.Context(), b.Dialect.sql("INSERT INTO {records} (id, status, owner, fence, lease_until, expires_at, receive_count)"+
		" VALUES (?, 'COMPLETED', 'other', 1, 0, {now} + 1000000, 1)"), key))(t)
	return tx
}

// releaseUnknown releases a claim whose outcome is unknown, as package dedup does: once, on a context of its own. It returns
// at once; the channel gets the error.
func releaseUnknown(t *testing.T, s *Store, c dedup.Claim, acquireErr error) <-chan error {
	t.Helper()
	if !errors.Is(acquireErr, dedup.ErrOutcomeUnknown) {
		t.Errorf("Acquire: got error %v, want ErrOutcomeUnknown", acquireErr)
	}
	released := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		released <- s.Release(ctx, dedup.Lease{Key: c.Key, Owner: c.Owner}, acquireErr)
	}()
	return released
}

// giveUp acquires a record whose INSERT waits for a lock, and gives it up after a while: after more on a machine on which the INSERT has
// not begun by then. It returns how long after its context's end Acquire returned, and the error.
func giveUp(t *testing.T, s *Store, c dedup.Claim, after time.Duration) (late time.Duration, err error) {
	t.Helper()
	for ; ; after *= 4 {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), after)
		_, err = granted.Lease(s.Acquire(ctx, c))
		cancel()
		if late = time.Since(start) - after; !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire: got error %v, want the deadline", err)
		}
		if errors.Is(err, dedup.ErrOutcomeUnknown) || after > time.Minute {
			return late, err
		}
	}
}

// A caller's context ends while its INSERT waits for a lock. Acquire returns at once. The release of the claim does not
// overtake the INSERT.
func TestAcquireCancelled(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		db := b.Open(t)
		db.SetMaxOpenConns(1)
		before := session(t, b, db)
		s := storeOn(t, db, b.Dialect)
		must.Do(t, s.Check(t.Context()))
		tx := blocked(t, b, "k")
		late, err := giveUp(t, s, claim("k", "gone"), 200*time.Millisecond)
		released := releaseUnknown(t, s, claim("k", "gone"), err)
		if late > defaultTimeout-time.Second {
			t.Errorf("the caller waited %v", late)
		}
		must.Do(t, tx.Rollback())
		must.Do(t, <-released)
		if r, err := s.Inspect(t.Context(), "k"); err != nil || r.Owner != "gone" || !r.Until.IsZero() {
			t.Fatalf("record: got %+v and error %v, want it released by the cancelled owner", r, err)
		}
		eventually(t, "the store forgets the acquire", func() bool {
			_, known := s.left.ends.Load([2]string{"k", "gone"})
			return !known
		})
		if _, err := granted.Lease(s.Acquire(t.Context(), claim("k", "gone"))); !errors.Is(err, sqsonce.ErrLeaseLost) {
			t.Errorf("a late copy of that acquire: got %v, want ErrLeaseLost", err)
		}
		if l := mustAcquire(t, s, claim("k", "b")); l.Takeover {
			t.Error("the next lease is a takeover, want the record released")
		}
		// The statement was not cancelled: that would break the connection.
		if after := session(t, b, db); after != before {
			t.Errorf("session: got %d, want %d as before", after, before)
		}
	})
}

// session is the server's number for the pool's one connection.
func session(t *testing.T, b *Bed, db *sql.DB) (id int64) {
	t.Helper()
	ask := b.kind.SessionID
	must.Do(t, db.QueryRowContext(t.Context(), ask).Scan(&id))
	return id
}

// A release and a complete do not overtake the acquire of their owner. Under the policy OnStoreDownRunAnyway the handler runs without
// an answer to its acquire.
func TestCompleteAfterUnknownAcquire(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		must.Do(t, s.Check(t.Context()))
		tx := blocked(t, b, "k")
		_, _ = giveUp(t, s, claim("k", "a"), 200*time.Millisecond)
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := s.Complete(short, dedup.Lease{Key: "k", Owner: "a"}, dedup.Result{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Complete during the acquire: got error %v, want it to wait", err)
		}
		short, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := s.Release(short, dedup.Lease{Key: "k", Owner: "a"}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Release during the acquire: got error %v, want it to wait", err)
		}
		must.Do(t, tx.Rollback())
		mustComplete(t, s, dedup.Lease{Key: "k", Owner: "a"})
	})
}

// The store gives a statement up, and the server does not notice: the statement still waits for a lock. Then the caller's
// context ends. When the statement gets the lock, its lease is released.
func TestAcquireCancelledAfterTimeout(t *testing.T) {
	each(t, mysqls, NewBed, func(t *testing.T, b *Bed) {
		s := newStore(t, b, func(o *Options) { o.Timeout = 200 * time.Millisecond })
		eventually(t, "check", func() bool { return s.Check(t.Context()) == nil }) // a busy machine takes longer at times
		tx := blocked(t, b, "k")
		_, err := giveUp(t, s, claim("k", "gone"), 500*time.Millisecond)
		released := releaseUnknown(t, s, claim("k", "gone"), err)
		time.Sleep(200 * time.Millisecond)
		must.Do(t, tx.Rollback())
		must.Do(t, <-released)
		for range 400 {
			if l, err := granted.Lease(s.Acquire(t.Context(), claim("k", "b"))); err == nil {
				if l.Takeover {
					t.Error("the next lease is a takeover, want the record released")
				}
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Error("the key is leased to the cancelled owner")
	})
}

// An INSERT that waited for a lock leaves less of the lease than the caller asked for. The lease is renewed before Acquire
// returns.
func TestSlowInsert(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		must.Do(t, s.Check(t.Context()))
		tx := blocked(t, b, "k")
		begun := time.Now()
		time.AfterFunc(1500*time.Millisecond, func() { _ = tx.Rollback() })
		c := claim("k", "a")
		c.Lease = 2 * time.Second
		if l := mustAcquire(t, s, c); l.Until.Sub(begun) < 3*time.Second {
			t.Errorf("new lease of 2 s: it ends %v after the call, want it renewed after 1.5 s", l.Until.Sub(begun))
		}
	})
}

// The lease's end for its owner is never later than the record's, however long the statement took.
func TestSlowInsertEndsEarly(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		must.Do(t, s.Check(t.Context()))
		tx := blocked(t, b, "k")
		time.AfterFunc(500*time.Millisecond, func() { _ = tx.Rollback() })
		for _, c := range []dedup.Claim{claim("k", "a"), claim("k", "b")} {
			l := mustAcquire(t, s, c)
			// The database's clock is this machine's.
			r, err := s.find(t.Context(), b.DB, "k")
			if err != nil || l.Until.After(time.UnixMilli(r.until)) {
				t.Errorf("Until: got %v, want it not after the record's %v (%v)", l.Until, time.UnixMilli(r.until), err)
			}
			l = must.Get(s.Renew(t.Context(), l, 2*time.Hour))(t)
			if r, err = s.find(t.Context(), b.DB, "k"); err != nil || l.Until.After(time.UnixMilli(r.until)) {
				t.Errorf("renewed Until: got %v, want it not after the record's %v (%v)", l.Until, time.UnixMilli(r.until), err)
			}
			age(t, b, "k", 3*time.Hour)
		}
	})
}

// A pool without a free connection: the wait ends with the caller's context, and nothing was sent.
func TestNoConnection(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		db := b.Open(t)
		db.SetMaxOpenConns(1)
		s := storeOn(t, db, b.Dialect)
		must.Do(t, s.Check(t.Context()))
		conn := must.Get(db.Conn(t.Context()))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := granted.Lease(s.Acquire(ctx, claim("k", "a"))); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, dedup.ErrOutcomeUnknown) {
			t.Errorf("Acquire: got error %v, want the deadline, and the outcome known", err)
		}
		must.Do(t, conn.Close())
		time.Sleep(100 * time.Millisecond) // time for a statement that must not be sent
		if _, err := newStore(t, b).Inspect(t.Context(), "k"); !errors.Is(err, dedup.ErrNotFound) {
			t.Errorf("Inspect: got %v, want no record", err)
		}
	})
}

// Late copies of every statement, on a record that has changed since: they change nothing.
func TestLateCopies(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		a := mustAcquire(t, s, claim("k", "a"))
		old := must.Get(s.find(t.Context(), b.DB, "k"))(t)
		age(t, b, "k", 2*time.Hour)
		stale, err := s.find(t.Context(), b.DB, "k") // free, as another owner has read it
		if err != nil || stale.stateFor(claim("k", "b")) != free {
			t.Fatalf("got %+v, %v, want it free", stale, err)
		}
		must.Get(s.Renew(t.Context(), a, time.Hour))(t)
		// The other owner's UPDATE comes now, after the renewal.
		if l, err := s.take(t.Context(), b.DB, claim("k", "b"), stale); !errors.Is(err, errContended) {
			t.Errorf("take of a record that was renewed since: got %+v, %v, want it refused", l, err)
		}
		// An UPDATE that names the record as it is, with a live lease: the database's clock refuses it.
		live := must.Get(s.find(t.Context(), b.DB, "k"))(t)
		if l, err := s.take(t.Context(), b.DB, claim("k", "b"), live); !errors.Is(err, errContended) {
			t.Errorf("take of a live lease: got %+v, %v, want it refused", l, err)
		}
		mustComplete(t, s, a)
		done := must.Get(s.find(t.Context(), b.DB, "k"))(t)
		for _, r := range []record{old, stale, live, done} {
			if l, err := s.take(t.Context(), b.DB, claim("k", "b"), r); !errors.Is(err, errContended) {
				t.Errorf("take of a completed record: got %+v, %v, want it refused", l, err)
			}
		}
		must.Do(t, s.Complete(t.Context(), a, dedup.Result{Data: []byte("again")}))
		if r, err := s.Inspect(t.Context(), "k"); err != nil || len(r.Result.Data) > 0 || !r.Completed {
			t.Errorf("record: got %+v, %v, want the first result", r, err)
		}
	})
}

// With NoTakeover, an acquire reads a record that was released. Before its UPDATE another owner takes the record and
// crashes. The UPDATE must not take the crashed record.
func TestLateTakeOfCrashedRecord(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		must.Do(t, s.Release(t.Context(), mustAcquire(t, s, claim("k", "a")), nil))
		released := must.Get(s.find(t.Context(), b.DB, "k"))(t)
		mustAcquire(t, s, claim("k", "crashes"))
		age(t, b, "k", 2*time.Hour)
		c := claim("k", "b")
		c.NoTakeover = true
		if l, err := s.take(t.Context(), b.DB, c, released); !errors.Is(err, errContended) {
			t.Errorf("got %+v, %v, want it refused", l, err)
		}
	})
}
