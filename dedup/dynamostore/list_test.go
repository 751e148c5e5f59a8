package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/dedup"
)

// scans counts the items that Scan returns.
type scans struct {
	Client
	pages, items int
}

func (s *scans) Scan(ctx context.Context, in *dynamodb.ScanInput, optFns ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	out, err := s.Client.Scan(ctx, in, optFns...)
	s.pages++
	s.items += len(out.Items)
	return out, err
}

// largeRecords are completed, 3 MB together, and one is not.
func (b *bed) largeRecords() (*Store, *scans) {
	b.Helper()
	client := &scans{Client: b.client(b.srv)}
	s := must.Get(New(client, testTable))(b)
	large := dedup.Result{Data: []byte(strings.Repeat("x", 100_000))}
	for i := range 30 {
		c := claim("a")
		c.Key = fmt.Sprint("billing#", i)
		must.Do(b, s.Complete(b.Context(), b.acquire(s, c), large))
	}
	b.acquire(s, claim("a"))
	return s, client
}

// A list waits between its requests, and says what it consumed: half a unit for each 4 KB.
func TestListIsPaced(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s, client := b.largeRecords()
		// The first two of three pages of 1 MB are 250 units.
		for units, want := range map[int]time.Duration{0: 2500 * time.Millisecond, 50: 5 * time.Second, -1: 0} {
			start, before, pages := time.Now(), s.Stats().ReadUnits, client.pages
			n := 0
			for _, err := range s.List(t.Context(), func(o *dedup.ListOptions) { o.ReadUnits = units }) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			if got := client.pages - pages; n != 31 || got != 3 {
				t.Errorf("%d records in %d requests, want 31 in 3", n, got)
			}
			if got := s.Stats().ReadUnits - before; got < 360 || got > 380 {
				t.Errorf("%v read units, want half a unit for each 4 KB of 3 MB", got)
			}
			if got := time.Since(start); (got - want).Abs() > want/10 {
				t.Errorf("ReadUnits %d: the list takes %s, want %s: the last request waits for nothing", units, got, want)
			}
		}
	})
}

// A list of what is open transfers no completed record.
func TestListOfOpenRecords(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s, client := b.largeRecords()
		for r, err := range s.List(t.Context(), func(o *dedup.ListOptions) { o.States = []dedup.RecordState{dedup.StateRunning} }) {
			if err != nil || r.Key != testKey {
				t.Errorf("got %+v, %v", r, err)
			}
		}
		if client.items != 1 {
			t.Errorf("%d items were returned, want 1", client.items)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var last error
		for _, err := range s.List(ctx, func(o *dedup.ListOptions) { o.ReadUnits = 1 }) {
			last = err
		}
		if !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("cancelled between two requests: got error %v, want DeadlineExceeded", last)
		}
	})
}

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
			runStore(t, c.name, func(t *testing.T, b *bed, s *Store) {
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
				if err := s.Delete(t.Context(), testKey, func(o *dedup.DeleteOptions) { o.Force = true }); err != nil || b.item(testTable) != nil {
					t.Errorf("forced Delete: got %v and record %v, want neither", err, b.item(testTable))
				}
			})
		}
	}
}

// TTL deletes records whose retention is over and nothing else: not one whose lease was renewed past it.
func TestTTLDeletesNoLiveLease(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
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
