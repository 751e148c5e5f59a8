package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// At saturation a message costs a fraction of a request, for acquire and complete together.
func TestRequestsPerMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		handlers int
		most     float64
		result   dedup.Result
	}{{64, 0.12, dedup.Result{}}, {100, 0.10, dedup.Result{Validation: "hash", Skipped: errors.New("void"), Note: "note"}}} {
		runStore(t, fmt.Sprint(c.handlers, " handlers"), func(t *testing.T, b *bed, s *Store) {
			// The way there and back.
			b.faults(
				fault.Rule{Prob: 0.25, Do: fault.Delay, Delay: 4 * time.Millisecond},
				fault.Rule{Prob: 0.67, Do: fault.Delay, Delay: 5 * time.Millisecond},
				fault.Rule{Prob: 1, Do: fault.Delay, Delay: 6 * time.Millisecond},
			)
			sent := len(b.srv.Calls())
			const messages = 4000
			next := make(chan int, messages)
			for i := range messages {
				next <- i
			}
			close(next)
			var wg sync.WaitGroup
			for range c.handlers {
				wg.Go(func() {
					for i := range next {
						cl := claim(fmt.Sprint("owner ", i))
						cl.Key = fmt.Sprint("billing#", i)
						l, err := granted.Lease(s.Acquire(t.Context(), cl))
						if err != nil {
							t.Errorf("Acquire: got error %v, want a lease", err)
							continue
						}
						if err := s.Complete(t.Context(), l, c.result); err != nil {
							t.Errorf("Complete: got error %v, want nil", err)
						}
					}
				})
			}
			wg.Wait()
			if got := float64(len(b.srv.Calls())-sent) / messages; got > c.most {
				t.Errorf("%.3f requests a message, want at most %.2f", got, c.most)
			}
			if got, want := b.units(sent), float64(2*messages); got != want {
				t.Errorf("%.0f write units, want %.0f: batches cost none", got, want)
			}
		})
	}
}

func TestWhatIsBatched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options func(*Options)
		change  func(*dedup.Claim)
		want    int // batches for three acquires at once
	}{
		{name: "first deliveries", want: 1},
		{name: "unknown receive count", change: func(c *dedup.Claim) { c.ReceiveCount = 0 }, want: 1},
		{name: "redeliveries", change: func(c *dedup.Claim) { c.ReceiveCount = 2 }, want: 0},
		{name: "without takeovers", change: func(c *dedup.Claim) { c.NoTakeover = true }, want: 1},
		{name: "no linger", options: func(o *Options) { o.Linger = -1 }, want: 1},
		{name: "off", options: func(o *Options) { o.MaxBatch = -1 }, want: 0},
		{name: "two in a batch", options: func(o *Options) { o.MaxBatch = 2 }, want: 1},
	} {
		runBed(t, c.name, func(t *testing.T, b *bed) {
			s := b.storeWithPeer(func(o *Options) {
				if c.options != nil {
					c.options(o)
				}
			})
			claims := claimsOf(3)
			for i := range claims {
				if c.change != nil {
					c.change(&claims[i])
				}
			}
			sent := len(b.srv.Calls())
			if _, errs := acquireAll(t.Context(), s, claims); errors.Join(errs...) != nil {
				t.Fatal(errs)
			}
			if got := strings.Count(fmt.Sprint(b.ops(sent)), batchCall); c.name != "no linger" && got != c.want {
				t.Errorf("batches: got %d of %v, want %d", got, b.ops(sent), c.want)
			}
			if got := len(b.srv.Items(testTable)); got != len(claims) {
				t.Errorf("%d records, want %d", got, len(claims))
			}
		})
	}
}

// PartiQL takes only the name of a table: with an ARN, such as that of another account's table, every write is sent singly.
func TestTableByARNIsNotBatched(t *testing.T) {
	t.Parallel()
	s := must.Get(New(&batchLine{}, "arn:aws:dynamodb:us-east-1:123456789012:table/dedup"))(t)
	s.peers.enter("somebody else", time.Now().Add(time.Hour))
	m := s.clock.look()
	if s.batchInsert(s.newAcquisition(claim("a"), 0, m), m) != nil {
		t.Error("an acquire is batched")
	}
}

// A complete returns at once where its context ends while the batch is under way.
func TestCompleteCancelledDuringABatch(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer()
		leases, _ := acquireAll(t.Context(), s, claimsOf(2))
		b.faults(fault.Rule{Op: batchCall, Nth: 1, Do: fault.Delay, Delay: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := completeAll(ctx, s, leases); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Complete: got error %v, want context.DeadlineExceeded", err)
		}
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("Complete took %s, want the 100 ms that its caller had", took)
		}
		time.Sleep(2 * time.Second)
		for _, r := range b.records() {
			if r[attrStatus] != completed {
				t.Errorf("record: got %v, want it completed: the batch was sent", r)
			}
		}
	})
}

// No goroutine and no timer remains when all is done.
func TestNothingRemains(t *testing.T) {
	t.Parallel()
	// A bubble ends only when every goroutine in it has: where one remains the test fails with a deadlock.
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		s := b.storeWithPeer(func(o *Options) { o.Linger = time.Hour })
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, c := range claimsOf(3) {
			wg.Go(func() {
				if _, err := granted.Lease(s.Acquire(ctx, c)); !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled Acquire: got error %v, want context.Canceled", err)
				}
			})
		}
		synctest.Wait()
		sent := len(b.srv.Calls())
		cancel()
		wg.Wait()
		synctest.Wait()
		if s.batcher.open != nil {
			t.Error("a batch is still open, and no statement is in it")
		}
		time.Sleep(2 * time.Hour)
		if got := b.ops(sent); len(got) != 0 {
			t.Errorf("calls after every caller has returned: %v, want none", got)
		}
	})
}

// Several deliveries of one event at the same instant: never in one batch, and one of them is granted.
func TestDuplicatesInOneBatch(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer()
		claims := claimsOf(4)
		claims[1].Key, claims[2].Key = claims[0].Key, claims[0].Key
		_, errs := acquireAll(t.Context(), s, claims)
		var granted, held int
		for _, err := range errs[:3] {
			switch {
			case err == nil:
				granted++
			case errors.Is(err, sqsonce.ErrInProgress):
				held++
			default:
				t.Errorf("Acquire of a duplicate: got error %v", err)
			}
		}
		if granted != 1 || held != 2 || errs[3] != nil {
			t.Errorf("%d of three duplicates granted, %d in progress, the fourth event %v; want 1, 2, nil", granted, held, errs[3])
		}
		if got := s.Stats(); got.Batches != 1 || got.Statements != 2 {
			t.Errorf("%d statements in %d batches, want one for each of the two events, in one batch", got.Statements, got.Batches)
		}
	})
}

// A duplicate in a batch is found by one read: 1 write unit and 1 read unit.
func TestDuplicateInABatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(*bed, *Store, dedup.Claim)
		want   func(dedup.Lease, error) bool
		ops    []string
		units  float64 // beyond those of the new event beside it
	}{
		{"completed", func(b *bed, s *Store, c dedup.Claim) { b.complete(s, b.acquire(s, c)) },
			func(_ dedup.Lease, err error) bool { return isCompleted(err) }, []string{batchCall, "GetItem"}, 2},
		{"held", func(b *bed, s *Store, c dedup.Claim) { b.acquire(s, c) },
			func(_ dedup.Lease, err error) bool { return errors.Is(err, sqsonce.ErrInProgress) }, []string{batchCall, "GetItem"}, 2},
		{"released", func(b *bed, s *Store, c dedup.Claim) { b.release(s, b.acquire(s, c)) },
			func(l dedup.Lease, err error) bool { return err == nil && l.LastError == "failed" && !l.Takeover }, []string{batchCall, "GetItem", "UpdateItem"}, 3},
		{"crashed", func(b *bed, s *Store, c dedup.Claim) { b.acquire(s, c); time.Sleep(2 * lease) },
			func(l dedup.Lease, _ error) bool { return l.Takeover }, []string{batchCall, "GetItem", "UpdateItem"}, 3},
	} {
		runBed(t, c.name, func(t *testing.T, b *bed) {
			s := b.storeWithPeer()
			claims := claimsOf(2)
			first := claims[0]
			first.Owner = "the first"
			c.before(b, s, first)
			sent := len(b.srv.Calls())
			leases, errs := acquireAll(t.Context(), s, claims)
			if !c.want(leases[0], errs[0]) || errs[1] != nil {
				t.Errorf("Acquire: got %+v, %v, and of a new event beside it %v", leases[0], errs[0], errs[1])
			}
			if got := b.ops(sent); !cmp.Equal(got, c.ops) {
				t.Errorf("calls: got %v, want %v", got, c.ops)
			}
			if got := b.units(sent) - 1; got != c.units {
				t.Errorf("capacity units of the duplicate: got %.1f, want %.1f", got, c.units)
			}
		})
	}
}

// A record that refused an INSERT and then cannot be read, or is gone: the update decides.
func TestDuplicateThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func() (*dynamodb.GetItemOutput, error){
		"not allowed": func() (*dynamodb.GetItemOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDeniedException"}
		},
		"no answer": func() (*dynamodb.GetItemOutput, error) { return nil, io.ErrUnexpectedEOF },
		"gone":      func() (*dynamodb.GetItemOutput, error) { return &dynamodb.GetItemOutput{}, nil },
	} {
		runBed(t, name, func(t *testing.T, b *bed) {
			s := b.storeWithPeer()
			claims := claimsOf(2)
			first := claims[0]
			first.Owner = "the first"
			b.complete(s, b.acquire(s, first))
			s.client = blind{s.client, read}
			_, errs := acquireAll(t.Context(), s, claims)
			if !isCompleted(errs[0]) || errs[1] != nil {
				t.Errorf("Acquire: got %v, want completed and nil", errs)
			}
		})
	}
}

// blind is a client whose reads a test answers.
type blind struct {
	Client
	read func() (*dynamodb.GetItemOutput, error)
}

func (b blind) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return b.read()
}
