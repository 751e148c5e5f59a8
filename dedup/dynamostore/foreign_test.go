package dynamostore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
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
		{"crashed", values{attrStatus: text(inProgress), attrUntil: number(1)}, func(o *dedup.Options) { o.OnCrash = dedup.Block }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				s := b.store()
				once, err := dedup.New(s, "billing", orderKey, c.opt)
				if err != nil {
					t.Fatal(err)
				}
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
			return s.commit(ctx, l, []ddbtypes.TransactWriteItem{write})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				s := b.store()
				l := b.acquire(s, claim("a"))
				b.foreign(values{attrStatus: text(inProgress), attrUntil: millisIn(time.Hour), TTLAttribute: seconds(time.Hour)})
				if err := next(s, t.Context(), l); !errors.Is(err, sqsonce.ErrLeaseLost) || !errors.Is(err, dedup.ErrForeignWriter) {
					t.Errorf("got error %v, want ErrLeaseLost with ErrForeignWriter", err)
				}
				if got := s.Stats().ForeignRecords; got != 1 {
					t.Errorf("Stats.ForeignRecords: got %d, want 1", got)
				}
			})
		})
	}
}

// Such a program completes the record under the holder's owner. Without the transaction's token the commit was not this
// call's.
func TestForeignWriterCompletesARecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		s := b.store()
		inbox, err := NewInbox(s, "billing", orderKey)
		if err != nil {
			t.Fatal(err)
		}
		h := inbox.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *Tx) error {
			l, _ := dedup.LeaseFrom(ctx)
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
