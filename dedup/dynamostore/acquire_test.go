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
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A caller whose context ends while the request is under way does not wait for the answer. When it has released the claim
// the key is free, and stays free when DynamoDB carries the request out after the release.
func TestCancelledAcquireIsReleased(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		rule   fault.Rule
		before string // error of an earlier delivery; "": there is no record
	}{
		{"in flight", fault.Rule{Do: fault.Delay, Delay: time.Second}, ""},
		{"in flight, longer than an attempt", fault.Rule{Do: fault.Delay, Delay: 3 * time.Second}, ""},
		{"reply lost", fault.Rule{Do: fault.LoseReply, Times: 3}, ""},
		{"in flight, released before", fault.Rule{Do: fault.Delay, Delay: time.Second}, "failed"},
		{"reply lost, released before", fault.Rule{Do: fault.LoseReply, Times: 3}, "failed"},
	} {
		runStore(t, c.name, func(t *testing.T, b *bed, s *Store) {
			if c.before != "" {
				b.release(s, b.acquire(s, claim("before")))
			}
			c.rule.Op, c.rule.Nth = "UpdateItem", 1
			b.faults(c.rule)
			stop := errors.New("stop")
			ctx, cancel := context.WithCancelCause(t.Context())
			start := time.Now()
			time.AfterFunc(20*time.Millisecond, func() { cancel(stop) })
			_, err := granted.Lease(s.Acquire(ctx, claim("a")))
			if !errors.Is(err, stop) || !errors.Is(err, dedup.ErrOutcomeUnknown) {
				t.Errorf("Acquire: got error %v, want the context's cause and ErrOutcomeUnknown", err)
			}
			if took := time.Since(start); took > 20*time.Millisecond+requestGrace {
				t.Errorf("Acquire returned after %s, want within %s of its context's end", took, requestGrace)
			}
			b.settle(s, claim("a"), err)
			time.Sleep(5 * time.Second)
			if item := b.item(testTable); item[attrOwner] != "a" || item[attrUntil] != "0" {
				t.Errorf("record: got %v, want it released by its owner", item)
			}
			b.acquire(b.store(), claim("b"))
		})
	}
}

// A request that is answered soon after its caller's context has ended is not cut off. Its claim is released like one without
// an answer.
func TestCancelledAcquireIsAnswered(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.Delay, Delay: 30 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start, sent := time.Now(), len(b.srv.Calls())
		_, err := granted.Lease(s.Acquire(ctx, claim("a")))
		if !errors.Is(err, dedup.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire: got error %v, want its deadline and ErrOutcomeUnknown", err)
		}
		if took := time.Since(start); took != 30*time.Millisecond {
			t.Errorf("Acquire returned after %s, want when its request was answered, after 30 ms", took)
		}
		b.settle(s, claim("a"), err)
		if got, want := b.ops(sent), []string{"UpdateItem", "UpdateItem"}; !cmp.Equal(got, want) {
			t.Errorf("calls: got %v, want %v", got, want)
		}
		b.acquire(b.store(), claim("b"))
	})
}

// A caller that leaves while its batch is under way waits for a short time: the store releases what the batch grants, and a
// Lambda function is frozen after that.
func TestCancelledBatchIsDrained(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer()
		b.faults(fault.Rule{Op: batchCall, Nth: 1, Do: fault.Delay, Delay: 100 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, errs := acquireAll(ctx, s, claimsOf(2))
		for _, err := range errs {
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, dedup.ErrOutcomeUnknown) {
				t.Errorf("Acquire: got error %v, want its deadline, and not ErrOutcomeUnknown: the store releases", err)
			}
		}
		if took := time.Since(start); took < 100*time.Millisecond || took > 100*time.Millisecond+defaultLinger {
			t.Errorf("Acquire returned after %s, want when its batch was answered, after 100 ms", took)
		}
		records := b.records()
		for key, r := range records {
			if r[attrUntil] != "0" {
				t.Errorf("record %s: got %v, want it released", key, r)
			}
		}
		if len(records) != 2 {
			t.Errorf("%d records, want 2", len(records))
		}
	})
}

// It does not wait for a batch that is not answered soon.
func TestCancelledBatchIsNotAwaited(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer()
		b.faults(fault.Rule{Op: batchCall, Nth: 1, Do: fault.Delay, Delay: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, errs := acquireAll(ctx, s, claimsOf(2))
		if took := time.Since(start); took != 20*time.Millisecond+drainTime || errs[0] == nil || errs[1] == nil {
			t.Errorf("got errors %v after %s, want two after %s", errs, took, 20*time.Millisecond+drainTime)
		}
		time.Sleep(5 * time.Second)
		for key, r := range b.records() {
			if r[attrUntil] != "0" {
				t.Errorf("record %s: got %v, want it released when the batch was answered", key, r)
			}
		}
	})
}

// An acquire without an answer is not sent again when its lease is over, and its caller releases what it may have written.
func TestAcquireIsNotSentAfterItsLease(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		before := len(b.srv.Calls())
		c := claim("a")
		c.Lease = 1500 * time.Millisecond
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.LoseReply})
		s.client = &frozenOnce{Client: s.client, d: 10 * time.Second}
		_, err := granted.Lease(s.Acquire(t.Context(), c))
		if !errors.Is(err, errExpired) || !errors.Is(err, dedup.ErrOutcomeUnknown) {
			t.Errorf("Acquire: got error %v, want errExpired and ErrOutcomeUnknown", err)
		}
		b.settle(s, c, err)
		// The one that lost its reply, and the release.
		if got, want := b.ops(before), []string{"UpdateItem", "UpdateItem"}; !cmp.Equal(got, want) {
			t.Errorf("calls: got %v, want %v", got, want)
		}
		if got := b.item(testTable)[attrUntil]; got != "0" {
			t.Errorf("lease end of the record: got %s, want 0, released", got)
		}
	})
}

// A lease whose answer is so late that less than half of it is left is renewed before Acquire returns it.
func TestLateAnswerIsRenewed(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		c := claim("a")
		c.Lease = 20 * time.Second
		s.client = &frozenOnce{Client: s.client, d: 15 * time.Second}
		l := b.acquire(s, c)
		if left := time.Until(l.Until); left < 15*time.Second {
			t.Errorf("left of a lease whose answer was 15 s late: %s, want nearly all of 20 s", left)
		}
		if _, err := granted.Lease(b.store().Acquire(t.Context(), claim("b"))); !errors.Is(err, sqsonce.ErrInProgress) {
			t.Errorf("Acquire by b: got error %v, want in progress", err)
		}
	})
}

// A lease whose answer came after its end, and after a takeover, is lost.
func TestLateAnswerAfterTakeoverIsLost(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		c := claim("a")
		c.Lease = 20 * time.Second
		s.client = &frozenOnce{Client: s.client, d: 30 * time.Second}
		go func() {
			time.Sleep(25 * time.Second)
			b.acquire(b.store(), claim("b"))
		}()
		if _, err := granted.Lease(s.Acquire(t.Context(), c)); !errors.Is(err, sqsonce.ErrLeaseLost) {
			t.Errorf("Acquire answered after a takeover: got error %v, want ErrLeaseLost", err)
		}
		if got := b.item(testTable)[attrOwner]; got != "b" {
			t.Errorf("owner of the record: got %s, want b", got)
		}
	})
}

// frozenOnce is a process that is frozen after the answer of its first acquire, and before it reads the answer.
type frozenOnce struct {
	Client
	d    time.Duration
	done bool
}

func (f *frozenOnce) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := f.Client.UpdateItem(ctx, in, optFns...)
	if !f.done {
		f.done = true
		time.Sleep(f.d)
	}
	return out, err
}

// The fence grows also where the last one is ahead of the clock, since its owner's host was ahead before its first answer.
// A refusal by the fence alone is never reported as in progress.
func TestFenceGrowsAboveOneThatIsAhead(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		ahead := b.store(off(4 * time.Minute))
		a := b.acquire(ahead, claim("a"))
		b.release(ahead, a)
		s := b.store()
		last, sent := a.Fence, len(b.srv.Calls())
		for i := range 3 {
			begun := time.Now()
			l := b.acquire(s, claim(fmt.Sprint("b", i)))
			if took := time.Since(begun); took > 0 {
				t.Errorf("acquired after %s, want at once: a refusal by the fence brings the fence", took)
			}
			if l.Fence <= last {
				t.Errorf("fence: got %d, want more than %d", l.Fence, last)
			}
			last = l.Fence
			b.release(s, l)
		}
		// One refusal each, by the fence alone, and one more for the first: its clock had no Date yet.
		if got := len(b.ops(sent)); got > 3*3+1 {
			t.Errorf("%d requests for three acquires and releases, want 9 or 10", got)
		}
	})
}

// longestOwner is 128 random bits, and the name of the process.
const longestOwner = 26 + len("@") + 32 + len(".") + 8

// The largest record that messages make: the longest key that is not hashed, the longest error and owner, every attribute.
func TestRecordStaysUnder1KB(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		c := claim(strings.Repeat("A", longestOwner))
		c.Key = "a-consumer-of-64-characters-0123456789012345678901234567890123456#" + string(make([]byte, 128))
		l := b.acquire(s, c)
		must.Do(t, s.Release(t.Context(), l, errors.New(strings.Repeat("e", 1000))))
		time.Sleep(time.Second)
		c.Owner = strings.Repeat("B", longestOwner)
		before := len(b.srv.Calls())
		hash := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		must.Do(t, s.Complete(t.Context(), b.acquire(s, c), dedup.Result{Validation: hash, Note: strings.Repeat("n", 1000)}))
		if got := b.units(before); got != 2 {
			t.Errorf("a retry with the largest record: got %v units, want 2", got)
		}
	})
}

// A key that DynamoDB would not take, and a claim that cannot be granted, are refused before a request.
func TestClaimIsChecked(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&refusalCounter{}, testTable))(t)
	long := strings.Repeat("k", maxKey+1)
	if err := checkKey("key", long[1:]); err != nil {
		t.Errorf("%d bytes: got %v, want nil", maxKey, err)
	}
	acquire := func(change func(*dedup.Claim)) error {
		c := claim("a")
		change(&c)
		return second(granted.Lease(s.Acquire(t.Context(), c)))
	}
	for _, bad := range []struct {
		field string
		err   error
	}{
		{"Claim.Key", acquire(func(c *dedup.Claim) { c.Key = long })},
		{"Claim.Owner", acquire(func(c *dedup.Claim) { c.Owner = "" })},
		{"Claim.Lease", acquire(func(c *dedup.Claim) { c.Lease = 0 })},
		{"seen.Key", s.Reopen(t.Context(), dedup.Record{Lease: dedup.Lease{Key: long, Owner: "a"}}, "note")},
		{"key", second(s.Inspect(t.Context(), ""))},
		{"key", s.Delete(t.Context(), long)},
	} {
		if e, ok := errors.AsType[*sqsonce.OptionError](bad.err); !ok || e.Field != bad.field {
			t.Errorf("bad %s: got error %v, want a *OptionError that names it", bad.field, bad.err)
		}
	}
}
