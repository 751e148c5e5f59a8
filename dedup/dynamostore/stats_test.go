package dynamostore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// The units are those that the server counts, with refused writes of every size.
func TestStatsUnits(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		var writes, reads float64
		spent := func(what string, w, r float64, f func()) {
			t.Helper()
			f()
			got := s.Stats()
			if got.WriteUnits-writes != w || got.ReadUnits-reads != r {
				t.Errorf("%s: got %v write and %v read units, want %v and %v", what, got.WriteUnits-writes, got.ReadUnits-reads, w, r)
			}
			writes, reads = got.WriteUnits, got.ReadUnits
		}
		result := dedup.Result{Data: []byte(strings.Repeat("x", 3000))}
		c := claim("a")
		spent("acquire", 1, 0, func() { b.acquire(s, c) })
		spent("delete that is refused", 1, 0, func() {
			if err := s.Delete(t.Context(), testKey); !errors.Is(err, sqsonce.ErrInProgress) {
				t.Fatal(err)
			}
		})
		spent("inspect", 0, 1, func() { _, _ = s.Inspect(t.Context(), testKey) })
		spent("complete with a result of 3,000 bytes", 4, 0, func() {
			must.Do(t, s.Complete(t.Context(), dedup.Lease{Key: testKey, Owner: "a"}, result))
		})
		spent("duplicate", 4, 0, func() { _, _ = granted.Lease(s.Acquire(t.Context(), claim("b"))) })
		spent("renewal that is refused", 4, 0, func() { _, _ = s.Renew(t.Context(), dedup.Lease{Key: testKey, Owner: "b"}, lease) })
		spent("delete", 4, 0, func() { _ = s.Delete(t.Context(), testKey) })
		spent("complete of no record", 1, 0, func() { _ = s.Complete(t.Context(), dedup.Lease{Key: testKey, Owner: "a"}, dedup.Result{}) })
		leases := make([]dedup.Lease, 0, 2)
		s.peers.enter("peer", time.Now().Add(time.Hour))
		spent("two acquires in a batch", 2, 0, func() {
			l, errs := acquireAll(t.Context(), s, claimsOf(2))
			must.Do(t, errors.Join(errs...))
			leases = l
		})
		spent("two completes in a batch", 2, 0, func() {
			must.Do(t, completeAll(t.Context(), s, leases))
		})
		if got := s.Stats(); got.Batches != 2 || got.Statements != 4 {
			t.Errorf("%d statements in %d batches, want 4 in 2", got.Statements, got.Batches)
		}
	})
}

// An inbox costs one unit to acquire, two for the record in the transaction, and twice the handler's writes.
func TestStatsInboxUnits(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		inbox := must.Get(NewInbox(s, "billing"))(t)
		h := inbox.Handler(func(_ context.Context, _ *sqsonce.Message, tx *Tx) error {
			for _, id := range []string{"one", "two", "three"} {
				tx.Put(&ddbtypes.Put{TableName: aws.String(testTable), Item: values{attrID: text(id)}})
			}
			return nil
		})
		must.Do(t, h(t.Context(), &sqsonce.Message{ID: "m", QueueARN: "arn:aws:sqs:us-east-1:0:q", ReceiveCount: 1}))
		if got, want := s.Stats().WriteUnits, 1.0+2+2*3; got != want {
			t.Errorf("write units of an inbox with three writes: got %v, want %v", got, want)
		}
		h = inbox.Handler(func(context.Context, *sqsonce.Message, *Tx) error { return sqsonce.Postpone(time.Hour, nil) })
		err, before := h(t.Context(), &sqsonce.Message{ID: "n", QueueARN: "arn:aws:sqs:us-east-1:0:q", ReceiveCount: 1}), 1.0+2+2*3
		if got := s.Stats().WriteUnits - before; !sqsonce.OutcomeOf(err).Postpone || got != 2 {
			t.Errorf("postponed: got error %v and %v write units, want 2", err, got)
		}
	})
}

// The condition refuses a claim whose lease was renewed since. The item says that its owner has it: an own retry.
func TestStatsOfAnOwnRetryAfterARenewal(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		b.renew(s, b.acquire(s, claim("a")), 2*lease)
		if l := b.acquire(s, claim("a")); !l.OwnRetry || s.Stats().OwnRetries != 1 {
			t.Errorf("got %+v and Stats.OwnRetries %d, want an own retry and 1", l, s.Stats().OwnRetries)
		}
	})
}

func TestItemSize(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	want := map[string]int{"0": 1, "7": 2, "42": 2, "100": 2, "123": 3, "-5": 3, "0.5": 2, "1732134437123": 8}
	for s := range want {
		got[s] = numberSize(s)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("sizes of numbers (-want +got):\n%s", d)
	}
	item := values{
		"s": text("four"), "b": &ddbtypes.AttributeValueMemberB{Value: []byte("xyz")}, "t": &ddbtypes.AttributeValueMemberBOOL{},
		"ss": &ddbtypes.AttributeValueMemberSS{Value: []string{"a", "bc"}}, "ns": &ddbtypes.AttributeValueMemberNS{Value: []string{"1", "22"}},
		"bs": &ddbtypes.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}},
		"l":  &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{text("a"), number(1)}},
		"m":  &ddbtypes.AttributeValueMemberM{Value: values{"k": text("v")}},
	}
	if got, want := itemSize(item), (1+4)+(1+3)+(1+1)+(2+3)+(2+4)+(2+3)+(1+3+2+3)+(1+3+1+2); got != want {
		t.Errorf("size of an item: got %d, want %d", got, want)
	}
}
