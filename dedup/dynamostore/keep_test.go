package dynamostore

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// An answer is lost, and the next request finds the record that the first one wrote.
func TestKeepAnswerLost(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		seen := dedup.Record{Lease: dedup.Lease{Key: testKey}}
		b.acquire(s, dedup.Claim{Key: "another", Owner: "a", Lease: lease, Retention: time.Hour}) // an answer with a Date
		for _, data := range []string{"first", "second"} {
			b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.LoseReply})
			sent := len(b.srv.Calls())
			r := must.Get(s.Keep(t.Context(), seen, "ann", []byte(data), time.Hour))(t)
			if got := b.ops(sent); !cmp.Equal(got, []string{"UpdateItem", "UpdateItem"}) {
				t.Errorf("calls: got %v, want two updates", got)
			}
			if seen = b.seen(s); seen.Owner != r.Owner || seen.Fence != r.Fence || string(seen.Result.Data) != data || !seen.ExpiresAt.Equal(r.ExpiresAt) {
				t.Errorf("after it: got %+v, want %+v", seen, r)
			}
		}
	})
}

// How long a text is kept is counted by DynamoDB's clock, also in a process whose clock is wrong and that has had no answer yet.
func TestKeepByTheClockOfDynamoDB(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		runStore(t, by.String(), func(t *testing.T, b *bed, s *Store) {
			none := dedup.Record{Lease: dedup.Lease{Key: testKey}}
			must.Get(b.store(off(by)).Keep(t.Context(), none, "ann", nil, 10*time.Minute))(t)
			if left := time.Until(b.seen(s).ExpiresAt); (left - 10*time.Minute).Abs() > 5*time.Second {
				t.Errorf("kept for %s, want 10 min", left)
			}
		})
	}
}
