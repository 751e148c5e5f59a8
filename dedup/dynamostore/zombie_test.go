package dynamostore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A delayed copy of a packet arrives after later steps of its sender. It changes nothing.
func TestDelayedCopyChangesNothing(t *testing.T) {
	t.Parallel()
	const late = 20 * time.Second
	for _, c := range []struct {
		name string
		nth  int // the UpdateItem that comes again
		run  func(*bed, *Store)
	}{
		{"acquire after complete", 1, func(b *bed, s *Store) {
			b.complete(s, b.acquire(s, short("a")))
		}},
		{"acquire after complete, its lease still ahead", 1, func(b *bed, s *Store) {
			b.complete(s, b.acquire(s, claim("a")))
		}},
		{"acquire after release", 1, func(b *bed, s *Store) {
			b.release(s, b.acquire(s, claim("a")))
		}},
		{"acquire after renew", 1, func(b *bed, s *Store) {
			b.renew(s, b.acquire(s, short("a")), lease)
		}},
		{"acquire after takeover", 1, func(b *bed, s *Store) {
			b.acquire(s, short("a"))
			time.Sleep(10 * time.Second)
			b.acquire(s, claim("b"))
		}},
		{"acquire after takeover and release", 1, func(b *bed, s *Store) {
			b.acquire(s, short("a"))
			time.Sleep(10 * time.Second)
			b.release(s, b.acquire(s, claim("b")))
		}},
		{"acquire after takeover and complete", 1, func(b *bed, s *Store) {
			b.acquire(s, short("a"))
			time.Sleep(10 * time.Second)
			b.complete(s, b.acquire(s, claim("b")))
		}},
		{"renew after release", 2, func(b *bed, s *Store) {
			l := b.acquire(s, claim("a"))
			b.renew(s, l, 2*lease)
			b.release(s, l)
		}},
		{"renew after complete", 2, func(b *bed, s *Store) {
			l := b.acquire(s, claim("a"))
			b.renew(s, l, 2*lease)
			b.complete(s, l)
		}},
		{"renew after a later renew", 2, func(b *bed, s *Store) {
			l := b.acquire(s, claim("a"))
			b.renew(s, l, 2*lease)
			b.renew(s, l, 3*lease)
		}},
		{"renew after takeover", 2, func(b *bed, s *Store) {
			b.renew(s, b.acquire(s, short("a")), 5*time.Second)
			time.Sleep(10 * time.Second)
			b.acquire(s, claim("b"))
		}},
		{"complete after takeover", 3, func(b *bed, s *Store) {
			// Refused when it is first sent, too.
			a := b.acquire(s, short("a"))
			time.Sleep(10 * time.Second)
			b.acquire(s, claim("b"))
			_ = s.Complete(b.Context(), a, dedup.Result{Data: []byte("a")})
		}},
		{"release after the next acquire", 2, func(b *bed, s *Store) {
			b.release(s, b.acquire(s, claim("a")))
			b.acquire(s, claim("b"))
		}},
		{"acquire after reopen", 1, func(b *bed, s *Store) {
			b.acquire(s, short("a"))
			time.Sleep(10 * time.Second)
			b.reopen(s, b.seen(s))
		}},
		{"renew after a forced reopen", 2, func(b *bed, s *Store) {
			b.renew(s, b.acquire(s, claim("a")), 2*lease)
			if err := s.Reopen(b.Context(), b.seen(s), "note", func(o *dedup.ReopenOptions) { o.Force = true }); err != nil {
				b.Fatal(err)
			}
		}},
		{"complete after reopen", 2, func(b *bed, s *Store) {
			b.complete(s, b.acquire(s, claim("a")))
			b.reopen(s, b.seen(s))
		}},
		{"release after reopen", 2, func(b *bed, s *Store) {
			b.release(s, b.acquire(s, claim("a")))
			b.reopen(s, b.seen(s))
		}},
		{"reopen after the next acquire", 3, func(b *bed, s *Store) {
			b.complete(s, b.acquire(s, claim("a")))
			b.reopen(s, b.seen(s))
			b.acquire(s, claim("b"))
		}},
		{"reopen after the next complete", 3, func(b *bed, s *Store) {
			b.complete(s, b.acquire(s, claim("a")))
			b.reopen(s, b.seen(s))
			b.complete(s, b.acquire(s, claim("b")))
		}},
		{"reopen after the next reopen", 3, func(b *bed, s *Store) {
			b.complete(s, b.acquire(s, claim("a")))
			b.reopen(s, b.seen(s))
			b.reopen(s, b.seen(s))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				s := b.store()
				// One answer, so that the clock has a Date and each step below is one request.
				if _, err := s.Inspect(t.Context(), testKey); !errors.Is(err, dedup.ErrNotFound) {
					t.Fatal(err)
				}
				b.faults(fault.Rule{Op: "UpdateItem", Nth: c.nth, Do: fault.Replay, Delay: late})
				c.run(b, s)
				before, sent := b.item(testTable), len(b.srv.Calls())
				time.Sleep(2 * late)
				if got := b.ops(sent); !cmp.Equal(got, []string{"UpdateItem"}) {
					t.Fatalf("calls after the last step: got %v, want only the delayed copy", got)
				}
				if d := cmp.Diff(before, b.item(testTable)); d != "" {
					t.Errorf("the delayed copy changed the record, - before + after:\n%s", d)
				}
			})
		})
	}
}

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
		_, err := s.Acquire(t.Context(), claim("b"))
		in, ok := errors.AsType[*dedup.InProgressError](err)
		if !ok {
			t.Fatalf("Acquire after a delayed copy on a deleted record: got error %v, want *InProgressError", err)
		}
		time.Sleep(time.Until(in.Until) + time.Second)
		b.acquire(s, claim("b"))
	})
}

func short(owner string) dedup.Claim {
	c := claim(owner)
	c.Lease = 5 * time.Second
	return c
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
