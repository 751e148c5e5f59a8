package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
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
	{"first acquire", "UpdateItem", func(ctx context.Context, s *Store, l dedup.Lease) (dedup.Lease, error) {
		if err := s.Delete(ctx, l.Key, func(o *dedup.DeleteOptions) { o.Force = true }); err != nil {
			return l, err
		}
		return granted.Lease(s.Acquire(ctx, claim("b")))
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
		return dedup.Lease{}, s.Delete(ctx, l.Key, func(o *dedup.DeleteOptions) { o.Force = true })
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
	must.Do(b, s.Delete(b.Context(), testKey, func(o *dedup.DeleteOptions) { o.Force = true }))
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

// After an unanswered call dedup's calls are one request each, until one is answered.
func TestRetriesAfterAnOutage(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		l := b.acquire(s, claim("a"))
		calls := func(rule ...fault.Rule) int {
			b.faults(rule...)
			sent := len(b.srv.Calls())
			_, _ = s.Renew(t.Context(), l, lease)
			return len(b.srv.Calls()) - sent
		}
		reset := fault.Rule{Prob: 1, Do: fault.Reset}
		for i, want := range []int{maxAttempts, 1, 1} {
			if got := calls(reset); got != want {
				t.Errorf("renewal %d of an outage: %d requests, want %d", i+1, got, want)
			}
		}
		if got := calls(); got != 1 {
			t.Errorf("the outage is over: %d requests, want 1", got)
		}
		if got := calls(reset); got != maxAttempts {
			t.Errorf("the next outage: %d requests, want %d", got, maxAttempts)
		}
	})
}

// broken are the conditions of the protocol, each with one clause that is made true for every record.
var broken = []struct {
	name   string
	kind   string // of the packets that are changed
	clause string
	within string // the part of the condition that has the clause
	scope  string // of the schedules that find it
}{
	{"acquire, own retry with any values", "acquire", "#in_progress_expiration=:until AND #fence=:fence", isOwnRetry, "completion"},
	{"acquire, own retry of a completed record", "acquire", "#status=:p", isOwnRetry, "completion"},
	{"acquire, own retry after a renewal", "acquire", "#in_progress_expiration=:until", isOwnRetry, "completion"},
	{"acquire, own retry by anyone", "acquire", "#owner=:me", isOwnRetry, "completion"},
	{"acquire, a live lease", "acquire", "#in_progress_expiration < :now", isOver, "completion"},
	{"acquire, a fence that does not grow", "acquire", fenceGrows, isOver, "commit"},
	{"acquire, a retained record", "acquire", "#expiration < :nows", isRetentionOver, "completion"},
	{"renew, another's", "renew", "#owner=:me", "", "completion"},
	{"renew, a completed record", "renew", "#status=:p", "", "a lost packet"},
	{"renew, a released lease", "renew", "#in_progress_expiration BETWEEN :one AND :until", "", "completion"},
	{"complete, another's", "complete", isMine, "", "completion"},
	{"release, another's", "release", "#owner=:me", "", "completion"},
	{"release, a completed record", "release", "#status=:p", "", "commit"},
	{"commit, another's", "commit", "#owner=:me", "", "commit"},
	{"commit, a completed record", "commit", "#status=:p", "", "commit"},
	{"commit, a released record", "commit", "#in_progress_expiration > :zero", "", "commit"},
	{"reopen, another's", "reopen", "#owner=:seen AND #fence=:seenfence", isSeen, "an operator"},
	{"reopen, completed meanwhile", "reopen", "#status=:seenstatus", isSeen, "an operator"},
	{"reopen, a live lease", "reopen", isReopenable, "", "an operator"},
	{"delete, a live lease", "delete", "(#in_progress_expiration < :now)", "", "deletion"},
}

// either is always true, and still has the placeholders of the clause: DynamoDB refuses unused ones.
func either(clause string) string {
	if !strings.HasPrefix(clause, "(") || !strings.HasSuffix(clause, ")") {
		clause = "(" + clause + ")"
	}
	return "(" + clause + " OR NOT " + clause + ")"
}

// breaker changes the conditions of the packets of one kind, and counts them.
type breaker struct {
	kind, clause, within string
	instead              string // of the clause; "": true for every record
	hits                 int
}

func (b *breaker) edit(p packet) packet {
	if b == nil || p.kind() != b.kind {
		return p
	}
	within := b.within
	if within == "" {
		within = p.condition
	}
	if !strings.Contains(p.condition, within) || !strings.Contains(within, b.clause) {
		return p
	}
	instead := b.instead
	if instead == "" {
		instead = either(b.clause)
	}
	condition := strings.Replace(p.condition, within, strings.Replace(within, b.clause, instead, 1), 1)
	b.hits++
	var in map[string]any
	mustDecode(p.body, &in)
	update := in
	if p.op == "TransactWriteItems" {
		update = in["TransactItems"].([]any)[0].(map[string]any)["Update"].(map[string]any)
	}
	update["ConditionExpression"] = condition
	body, err := json.Marshal(in)
	if err != nil {
		panic(err) // it was JSON before
	}
	edited, err := newPacket(p.op, string(body))
	if err != nil {
		panic(err)
	}
	return edited
}

func mustDecode(body string, into any) {
	if err := json.Unmarshal([]byte(body), into); err != nil {
		panic(err) // the SDK's own
	}
}
