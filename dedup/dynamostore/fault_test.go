package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// troubles are the faults of one request. None may change anything for the caller but time.
var troubles = []fault.Rule{
	{Do: fault.LoseReply},
	{Do: fault.Reset},
	{Do: fault.Error}, // InternalServerError
	{Do: fault.Error, After: true},
	{Do: fault.Error, Code: "TransactionConflictException"},
	{Do: fault.Error, Code: "ThrottlingException"},
	{Do: fault.Error, Code: "ProvisionedThroughputExceededException"},
	{Do: fault.Error, Code: "RequestLimitExceeded"},
	{Do: fault.Delay, Delay: 2500 * time.Millisecond}, // longer than the first attempt's timeout: its effect comes late
}

func describe(r fault.Rule) string {
	return fmt.Sprintf("%s %s after=%t x%d", r.Do, r.Code, r.After, r.Times)
}

// calls are the store's operations. Each runs on the record of a lease.
var calls = []struct {
	name string
	op   string
	run  func(context.Context, *Store, dedup.Lease) (dedup.Lease, error)
}{
	{"acquire", "UpdateItem", func(ctx context.Context, s *Store, _ dedup.Lease) (dedup.Lease, error) {
		return granted.Lease(s.Acquire(ctx, claim("a")))
	}},
	{"renew", "UpdateItem", func(ctx context.Context, s *Store, l dedup.Lease) (dedup.Lease, error) {
		return s.Renew(ctx, l, 2*lease)
	}},
	{"complete", "UpdateItem", func(ctx context.Context, s *Store, l dedup.Lease) (dedup.Lease, error) {
		return dedup.Lease{}, s.Complete(ctx, l, dedup.Result{Data: []byte(`"done"`)})
	}},
	{"release", "UpdateItem", func(ctx context.Context, s *Store, l dedup.Lease) (dedup.Lease, error) {
		return dedup.Lease{}, s.Release(ctx, l, errors.New("no"))
	}},
	{"delete", "DeleteItem", func(ctx context.Context, s *Store, l dedup.Lease) (dedup.Lease, error) {
		return dedup.Lease{}, s.Delete(ctx, l.Key, func(o *DeleteOptions) { o.Force = true })
	}},
	{"inspect", "GetItem", func(ctx context.Context, s *Store, l dedup.Lease) (dedup.Lease, error) {
		r, err := s.Inspect(ctx, l.Key)
		return r.Lease, err
	}},
	{"check", "DescribeTable", func(ctx context.Context, s *Store, _ dedup.Lease) (dedup.Lease, error) {
		return dedup.Lease{}, s.Check(ctx)
	}},
}

func TestFaultsChangeNothingButTime(t *testing.T) {
	t.Parallel()
	for _, call := range calls {
		for _, trouble := range troubles {
			for times := 1; times <= 3; times++ {
				rule := trouble
				rule.Op, rule.Nth, rule.Times = call.op, 1, times
				runBed(t, call.name+"/"+describe(rule), func(t *testing.T, b *bed) {
					want, wantItem := b.withoutFaults(call.run)
					got, gotItem := b.withFaults(call.run, rule)
					// OwnRetry says that there was a fault. The ends move with time.
					opts := cmpopts.IgnoreFields(dedup.Lease{}, "OwnRetry", "Fence", "Until")
					if d := cmp.Diff(want, got, opts); d != "" {
						t.Errorf("lease, - without + with faults:\n%s", d)
					}
					ends := cmpopts.IgnoreMapEntries(func(k, v string) bool {
						return k == attrFence || v != "0" && k == attrUntil || k == TTLAttribute
					})
					if d := cmp.Diff(wantItem, gotItem, ends); d != "" {
						t.Errorf("record, - without + with faults:\n%s", d)
					}
				})
			}
		}
	}
}

func (b *bed) withoutFaults(run func(context.Context, *Store, dedup.Lease) (dedup.Lease, error)) (dedup.Lease, map[string]string) {
	b.Helper()
	s := b.store()
	l, err := run(b.Context(), s, b.acquire(s, claim("a")))
	if err != nil {
		b.Fatalf("without faults: %v", err)
	}
	item := b.item(testTable)
	must.Do(b, s.Delete(b.Context(), testKey, func(o *DeleteOptions) { o.Force = true }))
	return l, item
}

func (b *bed) withFaults(run func(context.Context, *Store, dedup.Lease) (dedup.Lease, error), rule fault.Rule) (dedup.Lease, map[string]string) {
	b.Helper()
	s := b.store()
	// Also before an acquire, which is then the second one of the same claim.
	l := b.acquire(s, claim("a"))
	b.faults(rule)
	l, err := run(b.Context(), s, l)
	if err != nil {
		b.Fatalf("with faults: %v", err)
	}
	time.Sleep(10 * time.Second) // what was delayed has arrived
	return l, b.item(testTable)
}

// The first acquire of a key is granted under every fault of one attempt and its retries.
func TestAcquireWithFaultsIsGranted(t *testing.T) {
	t.Parallel()
	for _, trouble := range troubles {
		for times := 1; times <= 3; times++ {
			rule := trouble
			rule.Op, rule.Nth, rule.Times = "UpdateItem", 1, times
			runStore(t, describe(rule), func(t *testing.T, b *bed, s *Store) {
				b.faults(rule)
				l := b.acquire(s, claim("a"))
				time.Sleep(10 * time.Second)
				item := b.item(testTable)
				if got, want := item[attrFence], fmt.Sprint(l.Fence); got != want {
					t.Errorf("fence of the record: got %s, want the lease's %s", got, want)
				}
				if _, err := granted.Lease(b.store().Acquire(t.Context(), claim("b"))); !errors.Is(err, sqsonce.ErrInProgress) {
					t.Errorf("Acquire by b: got error %v, want in progress", err)
				}
				b.complete(s, l)
			})
		}
	}
}

// The condition itself recognises the request whose reply was lost. No refusal has to be read, since not every
// implementation of the API returns the item with it.
func TestOwnRetryIsNotRefused(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		refusals := &refusalCounter{Client: b.client(b.srv)}
		s := must.Get(New(refusals, testTable))(t)
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.LoseReply})
		l := b.acquire(s, claim("a"))
		if refusals.n != 0 {
			t.Errorf("the own retry was refused %d times by its condition, want 0", refusals.n)
		}
		if !l.OwnRetry || l.Takeover {
			t.Errorf("lease of an own retry: got %+v, want OwnRetry and no Takeover", l)
		}
	})
}

// An acquire keeps its values while its outcome is unknown, also where a later attempt is throttled. One owner has one
// lease.
func TestUnknownAcquireKeepsItsValues(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		b.faults(
			fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.LoseReply},
			fault.Rule{Op: "UpdateItem", Nth: 2, Do: fault.Error, Code: "ThrottlingException"},
			fault.Rule{Op: "UpdateItem", Nth: 3, Do: fault.Delay, Delay: 1500 * time.Millisecond},
		)
		l := b.acquire(s, claim("a"))
		if !l.OwnRetry {
			t.Errorf("the repeated request was not recognised as the one that lost its reply: %+v", l)
		}
		if got, want := b.item(testTable)[attrFence], fmt.Sprint(l.Fence); got != want {
			t.Errorf("fence of the record: got %s, want the lease's %s", got, want)
		}
	})
}

// An endpoint that accepts requests and never answers: the SDK's default client would wait without end.
func TestAttemptThatIsNeverAnswered(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.Delay, Delay: time.Hour})
		start := time.Now()
		l := b.acquire(s, claim("a"))
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("Acquire took %s, want the second attempt after 2 s", took)
		}
		b.complete(s, l)
	})
}

// A host whose clock is so wrong that its signatures are refused: the SDK reads the difference from the answer, and the
// next attempt has values from a clock that has read it too.
func TestRefusedSignatureOfAWrongClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := memdynamodb.New(func(o *memdynamodb.Options) {
			o.Now = func() time.Time { return time.Now().Add(-10 * time.Minute) }
		})
		t.Cleanup(srv.Close)
		b := &bed{T: t, srv: srv}
		must.Do(t, CreateTable(t.Context(), b.client(srv), testTable))
		s := b.store()
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.Error, Code: "InvalidSignatureException"})
		l := b.acquire(s, claim("a"))
		b.faults()
		if over := time.UnixMilli(l.Fence).Sub(time.Now().Add(-10 * time.Minute)); over > 2*time.Second {
			t.Errorf("the values of the second attempt are %s ahead of the server", over)
		}
	})
}

func second[T any](_ T, err error) error { return err }
