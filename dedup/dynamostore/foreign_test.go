package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// orderKey gives every message the record testKey.
func orderKey(o *dedup.Options) {
	o.Key = func(*sqsonce.Message) (string, error) { return "order-42", nil }
}

// A record of a program that does not check ownership, such as Powertools, is counted once for each delivery that finds it,
// by the store and by the consumer's Once.
func TestForeignRecordsAreCounted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		item values
		opt  func(*dedup.Options)
	}{
		{"completed", values{attrStatus: text(completed)}, func(*dedup.Options) {}},
		{"in progress", values{attrStatus: text(inProgress), attrUntil: number(1 << 50)}, func(*dedup.Options) {}},
		{"taken over", values{attrStatus: text(inProgress), attrUntil: number(1)}, func(*dedup.Options) {}},
		{"crashed", values{attrStatus: text(inProgress), attrUntil: number(1)}, func(o *dedup.Options) { o.OnCrash = dedup.OnCrashBlock }},
	} {
		runStore(t, c.name, func(t *testing.T, b *bed, s *Store) {
			once := must.Get(dedup.New(s, "billing", orderKey, c.opt))(t)
			item := values{TTLAttribute: number(time.Now().Add(time.Hour).Unix())}
			for name, v := range c.item {
				item[name] = v
			}
			b.foreign(item)
			_ = once.Handler(func(context.Context, *sqsonce.Message) error { return nil })(t.Context(), order(42))
			if got, once := s.Stats().ForeignRecords, once.Stats().ForeignWriters; got != 1 || once != 1 {
				t.Errorf("counted %d by the store and %d by Once, want 1 and 1", got, once)
			}
		})
	}
}

// A holder whose record such a program has overwritten gets ErrForeignWriter with its next write of any kind.
func TestForeignWriterOverwritesARecord(t *testing.T) {
	t.Parallel()
	write := ddbtypes.TransactWriteItem{Put: &ddbtypes.Put{TableName: aws.String(testTable), Item: values{attrID: text("other")}}}
	for name, next := range map[string]func(*Store, context.Context, dedup.Lease) error{
		"renew":    func(s *Store, ctx context.Context, l dedup.Lease) error { _, err := s.Renew(ctx, l, lease); return err },
		"complete": func(s *Store, ctx context.Context, l dedup.Lease) error { return s.Complete(ctx, l, dedup.Result{}) },
		"commit": func(s *Store, ctx context.Context, l dedup.Lease) error {
			return s.commit(ctx, l, dedup.Result{}, []ddbtypes.TransactWriteItem{write})
		},
	} {
		runStore(t, name, func(t *testing.T, b *bed, s *Store) {
			l := b.acquire(s, claim("a"))
			b.foreign(values{attrStatus: text(inProgress), attrUntil: millisIn(time.Hour), TTLAttribute: seconds(time.Hour)})
			if err := next(s, t.Context(), l); !errors.Is(err, sqsonce.ErrLeaseLost) || !errors.Is(err, dedup.ErrForeignWriter) {
				t.Errorf("got error %v, want ErrLeaseLost with ErrForeignWriter", err)
			}
			if got := s.Stats().ForeignRecords; got != 1 {
				t.Errorf("Stats.ForeignRecords: got %d, want 1", got)
			}
		})
	}
}

// powertoolsCompletes is the update by which Powertools completes a record, whoever has it.
func (b *bed) powertoolsCompletes(retention time.Duration) {
	b.Helper()
	if _, err := b.client(b.srv).UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(testTable), Key: values{attrID: text(testKey)},
		UpdateExpression:          aws.String("SET #d=:d, #e=:e, #s=:s"),
		ExpressionAttributeNames:  map[string]string{"#d": "data", "#e": TTLAttribute, "#s": attrStatus},
		ExpressionAttributeValues: values{":d": text(`{"by":"powertools"}`), ":e": seconds(retention), ":s": text(completed)},
	}); err != nil {
		b.Fatal(err)
	}
}

// Such a program completes the record under the holder's owner: the holder's next write of any kind says so. A complete gives
// the record its retention back, and never shortens it.
func TestForeignWriterCompletesForAnOwner(t *testing.T) {
	t.Parallel()
	complete := func(s *Store, ctx context.Context, l dedup.Lease) error { return s.Complete(ctx, l, dedup.Result{}) }
	for name, next := range map[string]func(*Store, context.Context, dedup.Lease) error{
		"renew":    func(s *Store, ctx context.Context, l dedup.Lease) error { return second(s.Renew(ctx, l, lease)) },
		"complete": complete,
		"complete, batched": func(s *Store, ctx context.Context, l dedup.Lease) error {
			s.peers.enter("peer", time.Now().Add(time.Hour))
			other := claim("other")
			other.Key = "billing#other"
			o, err := granted.Lease(s.Acquire(ctx, other))
			if err != nil {
				return err
			}
			done := make(chan error)
			go func() { done <- s.Complete(ctx, o, dedup.Result{}) }()
			return cmp.Or(s.Complete(ctx, l, dedup.Result{}), <-done)
		},
		"complete with a result": func(s *Store, ctx context.Context, l dedup.Lease) error {
			return s.Complete(ctx, l, dedup.Result{Data: []byte("1")})
		},
		"release": func(s *Store, ctx context.Context, l dedup.Lease) error { return s.Release(ctx, l, nil) },
	} {
		for _, theirs := range []time.Duration{time.Minute, 1000 * time.Hour} {
			runStore(t, fmt.Sprint(name, ", ", theirs), func(t *testing.T, b *bed, s *Store) {
				l := b.acquire(s, claim("a"))
				l = b.renew(s, l, lease)
				want := numberIn(t, b.item(testTable), TTLAttribute)
				b.powertoolsCompletes(theirs)
				theirEnd := numberIn(t, b.item(testTable), TTLAttribute)
				if err := next(s, t.Context(), l); !errors.Is(err, sqsonce.ErrLeaseLost) || !errors.Is(err, dedup.ErrForeignWriter) {
					t.Errorf("got error %v, want ErrLeaseLost with ErrForeignWriter", err)
				}
				if got := s.Stats().ForeignRecords; got != 1 {
					t.Errorf("Stats.ForeignRecords: got %d, want 1", got)
				}
				if !strings.HasPrefix(name, "complete") {
					want = theirEnd
				}
				r := b.records()[testKey]
				if got := numberIn(t, r, TTLAttribute); got != max(want, theirEnd) || r[attrStatus] != completed {
					t.Errorf("record: got %s until %d, want it completed until %d", r[attrStatus], got, max(want, theirEnd))
				}
			})
		}
	}
}

// An owner's own complete whose answer was lost is not another program's, whatever followed.
func TestOwnCompleteIsNotForeign(t *testing.T) {
	t.Parallel()
	for _, retention := range []time.Duration{time.Hour, 24 * time.Hour} {
		runStore(t, retention.String(), func(t *testing.T, b *bed, s *Store) {
			c := claim("a")
			c.Retention = retention
			l := b.acquire(s, c)
			time.Sleep(lease / 2)
			l = b.renew(s, l, lease)
			b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.LoseReply})
			b.complete(s, l)
			b.complete(s, l)
			b.release(s, l)
			if _, err := s.Renew(t.Context(), l, lease); !errors.Is(err, sqsonce.ErrLeaseLost) || errors.Is(err, dedup.ErrForeignWriter) {
				t.Errorf("Renew after Complete: got error %v, want ErrLeaseLost alone", err)
			}
			if got := s.Stats().ForeignRecords; got != 0 {
				t.Errorf("Stats.ForeignRecords: got %d, want 0", got)
			}
		})
	}
}

// The retention is tried again where it could not be given back.
func TestRetentionIsGivenBackInTheEnd(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		l := b.acquire(s, claim("a"))
		want := b.item(testTable)[TTLAttribute]
		b.powertoolsCompletes(time.Minute)
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 2, Do: fault.Reset, Times: maxAttempts})
		if err := s.Complete(t.Context(), l, dedup.Result{}); !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrLeaseLost) {
			t.Errorf("Complete: got error %v, want ErrUnavailable", err)
		}
		if err := s.Complete(t.Context(), l, dedup.Result{}); !errors.Is(err, dedup.ErrForeignWriter) {
			t.Errorf("Complete again: got error %v, want ErrForeignWriter", err)
		}
		if got := b.item(testTable)[TTLAttribute]; got != want {
			t.Errorf("end of retention: got %s, want %s", got, want)
		}
	})
}

// Such a program completes the record under the holder's owner. Without the transaction's token the commit was not this
// call's.
func TestForeignWriterCompletesARecord(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		inbox, err := NewInbox(s, "billing", orderKey)
		if err != nil {
			t.Fatal(err)
		}
		h := inbox.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *Tx) error {
			l, _ := inboxkit.LeaseFrom(ctx)
			b.foreign(values{attrStatus: text(completed), attrOwner: text(l.Owner), attrFence: number(l.Fence), TTLAttribute: seconds(time.Hour)})
			tx.Put(&ddbtypes.Put{TableName: aws.String(testTable), Item: values{attrID: text("other")}})
			return nil
		})
		err = h(t.Context(), order(42))
		if !errors.Is(err, sqsonce.ErrLeaseLost) || !errors.Is(err, dedup.ErrForeignWriter) {
			t.Errorf("got error %v, want ErrLeaseLost with ErrForeignWriter", err)
		}
		if got, once := s.Stats().ForeignRecords, inbox.Stats().ForeignWriters; got != 1 || once != 1 {
			t.Errorf("counted %d by the store and %d by Once, want 1 and 1", got, once)
		}
	})
}
