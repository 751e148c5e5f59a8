package dynamostore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

func TestDelete(t *testing.T) {
	t.Parallel()
	for _, dated := range []bool{true, false} {
		for _, c := range []struct {
			name string
			make func(*bed, *Store)
			live bool
		}{
			{"no record", func(*bed, *Store) {}, false},
			{"held", func(b *bed, s *Store) { b.acquire(s, claim("a")) }, true},
			{"held by Powertools outside Lambda", func(b *bed, _ *Store) {
				b.foreign(values{attrStatus: text(inProgress), TTLAttribute: seconds(time.Hour)})
			}, true},
			{"crashed", func(b *bed, s *Store) { b.acquire(s, claim("a")); time.Sleep(lease + 5*time.Second) }, false},
			{"released", func(b *bed, s *Store) { b.release(s, b.acquire(s, claim("a"))) }, false},
			{"completed", func(b *bed, s *Store) { b.complete(s, b.acquire(s, claim("a"))) }, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBed(t)
					s := b.store()
					c.make(b, s)
					if !dated {
						s = b.store() // an operator's, that has never asked anything
					} else if _, err := s.Inspect(t.Context(), "another"); !errors.Is(err, dedup.ErrNotFound) {
						t.Fatal(err)
					}
					err := s.Delete(t.Context(), testKey)
					if !c.live {
						if err != nil || b.item(testTable) != nil {
							t.Errorf("Delete: got %v and record %v, want neither", err, b.item(testTable))
						}
						return
					}
					if in, ok := errors.AsType[*dedup.InProgressError](err); !ok || b.item(testTable) == nil {
						t.Errorf("Delete of a live lease: got %v and record %v, want *InProgressError and the record", err, b.item(testTable))
					} else if !in.Until.After(time.Now()) {
						t.Errorf("InProgressError.Until: got %s, want it ahead", in.Until)
					}
					if err := s.Delete(t.Context(), testKey, func(o *DeleteOptions) { o.Force = true }); err != nil || b.item(testTable) != nil {
						t.Errorf("forced Delete: got %v and record %v, want neither", err, b.item(testTable))
					}
				})
			})
		}
	}
}

// TTL deletes records whose retention is over and nothing else: not one whose lease was renewed past it.
func TestTTLDeletesNoLiveLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		s := b.store()
		c := claim("a")
		c.Retention = time.Hour
		l := b.acquire(s, c)
		for range 5 {
			l = b.renew(s, l, time.Hour)
			time.Sleep(50 * time.Minute)
			if n := b.srv.SweepTTL(); n != 0 {
				t.Fatalf("TTL deleted %d records, want the live one kept", n)
			}
		}
		b.complete(s, l)
		time.Sleep(3 * time.Hour)
		if n := b.srv.SweepTTL(); n != 1 {
			t.Errorf("TTL deleted %d records after the retention, want 1", n)
		}
	})
}
