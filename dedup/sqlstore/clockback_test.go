package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// The server's clock was an hour ahead, and is right again. What was received, failed or was claimed meanwhile waits no hour, and no age
// is negative. A delay that a handler asked for stays.
func TestClockOfTheServerStepsBack(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		const hour = 3_600_000
		for id, set := range map[string]string{
			"received": fmt.Sprintf("received_at = received_at + %d, due_at = due_at + %[1]d", hour),
			"failed":   fmt.Sprintf("attempts = 1, received_at = received_at + %d, due_at = due_at + %[1]d + 600000", hour),
			"claimed":  fmt.Sprintf("attempts = 1, received_at = received_at + %d, due_at = 0, owner = 'died', lease_until = {now} + %[1]d + 30000", hour),
			"asked":    fmt.Sprintf("attempts = 1, due_at = due_at + 2 * %d", hour),
		} {
			receive(t, d, order(id, 1))
			exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET "+set+" WHERE event_id = 'orders|"+id+"'"))
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET received_at = received_at + 7200000"))
		if c, err := d.Count(t.Context()); err != nil || c.Oldest < 0 {
			t.Errorf("got %+v and error %v, want no negative age", c, err)
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET received_at = received_at - 7200000"))
		process(t, d, book, func(o *ProcessorOptions) { o.LeaseDuration = 30 * time.Second })
		awaitCounts(t, d, 1, 0)
		expectBalance(t, b.DB, 30)
	})
}

// A lease was written an hour ahead, and whoever meets it shortens it: its owner keeps it as long as it believes, and after
// a crash another one takes it over when that time has passed.
func TestClockOfTheServerStepsBackUnderALease(t *testing.T) {
	const length = time.Minute
	inbox := func(receive int) func(context.Context, *Store, string, dedup.Lease) error {
		return func(ctx context.Context, s *Store, id string, _ dedup.Lease) error {
			return newInbox(t, s).Handler(book)(ctx, order(id, receive))
		}
	}
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		for id, meet := range map[string]func(context.Context, *Store, string, dedup.Lease) error{
			"store":  acquireOther,
			"inbox":  inbox(1),
			"inbox2": inbox(2),
			"reopen": func(ctx context.Context, s *Store, _ string, l dedup.Lease) error {
				return s.Reopen(ctx, dedup.Record{Lease: l}, "note")
			},
			"delete": func(ctx context.Context, s *Store, _ string, l dedup.Lease) error { return s.Delete(ctx, l.Key) },
		} {
			c := claim("billing#orders|"+id, "a")
			c.Lease = length
			l := mustAcquire(t, s, c)
			exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET lease_until = lease_until + 3600000 WHERE id = ?"), l.Key)
			if again := mustAcquire(t, s, c); !again.OwnRetry || again.Until.After(time.Now()) {
				t.Errorf("%s: own retry: got %+v, want a lease to renew at once", id, again)
			}
			for _, when := range []string{"before", "after"} {
				if err := meet(t.Context(), s, id, l); !errors.Is(err, sqsonce.ErrInProgress) {
					t.Errorf("%s %s a renewal: got error %v, want it in progress", id, when, err)
				}
				if r, err := s.find(t.Context(), b.DB, l.Key); err != nil || r.owner != "a" || r.overlong() {
					t.Errorf("%s %s a renewal: got %+v and error %v, want the owner's lease, shortened", id, when, r, err)
				}
				exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET lease_until = lease_until + 3600000 WHERE id = ?"), l.Key)
				sent := time.Now()
				renewed, err := s.Renew(t.Context(), l, length)
				if err != nil || renewed.Until.After(sent.Add(time.Since(sent)+length)) {
					t.Errorf("%s: %s: Renew: got %v and error %v, want an end in %v", id, when, time.Until(renewed.Until), err, length)
				}
			}
			other, ok := errors.AsType[*dedup.InProgressError](acquireOther(t.Context(), s, id, l))
			if !ok || time.Until(other.Until) > length+time.Second {
				t.Errorf("%s: another owner: got %v, want to wait for %v", id, other, length)
				continue
			}
			age(t, b, l.Key, length+time.Second)
			if l := mustAcquire(t, s, claim(l.Key, "b")); !l.Takeover {
				t.Errorf("%s: got %+v, want a takeover", id, l)
			}
		}
	})
}

func acquireOther(ctx context.Context, s *Store, _ string, l dedup.Lease) error {
	_, err := granted.Lease(s.Acquire(ctx, claim(l.Key, "b")))
	return err
}

// An UPDATE that shortens a lease comes after a renewal that its sender has not read: the owner counts from the renewal.
func TestLateShorten(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		l := mustAcquire(t, s, claim("k", "a"))
		exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET lease_until = lease_until + 36000000"))
		read := must.Get(s.find(t.Context(), b.DB, "k"))(t)
		must.Get(s.Renew(t.Context(), l, time.Hour))(t)
		must.Do(t, s.shorten(t.Context(), b.DB, read))
		if r, err := s.find(t.Context(), b.DB, "k"); err != nil || r.until <= read.until {
			t.Errorf("got %+v and error %v, want the renewal's end", r, err)
		}
	})
}
