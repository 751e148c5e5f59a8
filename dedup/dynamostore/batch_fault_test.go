package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// batchTroubles are the faults of a batch, beyond those of every request.
var batchTroubles = slices.Concat(troubles, []fault.Rule{
	{Do: fault.FailEntries, Entries: []int{1}, Code: "TransactionConflict"},
	{Do: fault.FailEntries, Entries: []int{0, 2}, Code: "ThrottlingError"},
	{Do: fault.FailEntries, Entries: []int{0}, Code: "ProvisionedThroughputExceeded"},
	{Do: fault.FailEntries, Entries: []int{1, 2}, Code: "InternalServerError"},
	{Do: fault.FailEntries, Entries: []int{2}, Code: "ValidationError"},
	{Do: fault.FailEntries, Code: "RequestLimitExceeded"},
	{Do: fault.Error, Code: "ValidationException"},
	{Do: fault.Error, Code: "AccessDeniedException"},
	{Do: fault.Replay, Delay: time.Second},
})

// No fault of a batch changes anything but time: all acquires are granted, all complete, with one owner each.
func TestFaultsOfABatch(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"acquire", "complete"} {
		for _, trouble := range batchTroubles {
			for times := 1; times <= 2; times++ {
				rule := trouble
				rule.Op, rule.Nth, rule.Times = batchCall, 1, times
				t.Run(fmt.Sprint(step, "/", describe(rule), rule.Entries), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { batchTrouble(newBed(t), step, rule) })
				})
			}
		}
	}
}

func batchTrouble(b *bed, step string, rule fault.Rule) {
	s := b.storeWithPeer()
	if step == "acquire" {
		b.faults(rule)
	}
	leases, errs := acquireAll(b.Context(), s, claimsOf(3))
	if err := errors.Join(errs...); err != nil {
		b.Fatalf("Acquire: got error %v, want leases", err)
	}
	if step == "complete" {
		b.faults(rule)
	}
	for _, l := range leases {
		c := claim("another")
		c.Key = l.Key
		if _, err := granted.Lease(b.store().Acquire(b.Context(), c)); !errors.Is(err, sqsonce.ErrInProgress) {
			b.Errorf("Acquire by another: got error %v, want in progress", err)
		}
	}
	if err := completeAll(b.Context(), s, leases); err != nil {
		b.Fatalf("Complete: got error %v, want nil", err)
	}
	time.Sleep(10 * time.Second) // what was delayed has arrived
	records := b.records()
	for _, l := range leases {
		r := records[l.Key]
		if r[attrStatus] != completed || r[attrOwner] != l.Owner || r[attrFence] != fmt.Sprint(l.Fence) {
			b.Errorf("record of %+v: got %v, want it completed", l, r)
		}
	}
}

// An INSERT with an unknown outcome is sent again as the update with the same values, and the condition recognises it.
func TestUnknownInsertKeepsItsValues(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer()
		b.faults(fault.Rule{Op: batchCall, Nth: 1, Do: fault.LoseReply})
		sent := len(b.srv.Calls())
		leases, errs := acquireAll(t.Context(), s, claimsOf(2))
		for i, l := range leases {
			if errs[i] != nil || !l.OwnRetry || l.Takeover {
				t.Errorf("lease of an own retry: got %+v, %v, want OwnRetry and no Takeover", l, errs[i])
			}
		}
		if got, want := b.ops(sent), []string{batchCall, "UpdateItem", "UpdateItem"}; !cmp.Equal(got, want) {
			t.Errorf("calls: got %v, want %v", got, want)
		}
		if got := s.Stats().OwnRetries; got != 2 {
			t.Errorf("Stats.OwnRetries: got %d, want 2", got)
		}
	})
}

// lateBatches answers batches late, as in a process that was frozen meanwhile.
type lateBatches struct {
	Client
	by time.Duration
}

func (l lateBatches) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, optFns ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	out, err := l.Client.BatchExecuteStatement(ctx, in, optFns...)
	time.Sleep(l.by)
	return out, err
}

// As with a request that is sent singly: a lease of which less than half is left is renewed before Acquire returns it.
func TestLateAnswerOfABatchIsRenewed(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer()
		s.client = lateBatches{s.client, 40 * time.Second}
		leases, errs := acquireAll(t.Context(), s, claimsOf(2))
		for i, l := range leases {
			if left := time.Until(l.Until); errs[i] != nil || left < lease*3/4 {
				t.Errorf("got error %v and %s of a lease whose answer was 40 s late, want nearly all of %s", errs[i], left, lease)
			}
		}
	})
}

// Fewer responses than statements: it is not known which one is missing, so none counts.
func TestMissingAnswers(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer()
		line := &batchLine{Client: s.client, answer: func(call int, next func() (*dynamodb.BatchExecuteStatementOutput, error)) (*dynamodb.BatchExecuteStatementOutput, error) {
			out, err := next()
			if err == nil {
				out.Responses = out.Responses[:2]
			}
			return out, err
		}}
		s.client = line
		leases, errs := acquireAll(t.Context(), s, claimsOf(3))
		for i, l := range leases {
			if errs[i] != nil || !l.OwnRetry {
				t.Errorf("Acquire: got %+v, %v, want an own retry", l, errs[i])
			}
		}
		if err := completeAll(t.Context(), s, leases); err != nil {
			t.Error(err)
		}
		if line.calls != 2 {
			t.Errorf("%d batches, want 2", line.calls)
		}
	})
}

// Throttled INSERTs are sent in batches again, where they meet: each has waited for a random time.
func TestThrottledInsertsAreBatchedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"RequestLimitExceeded", "ThrottlingError", "ProvisionedThroughputExceeded", "TransactionConflict"} {
		runBed(t, code, func(t *testing.T, b *bed) {
			s := b.storeWithPeer()
			b.faults(fault.Rule{Op: batchCall, Nth: 1, Do: fault.FailEntries, Code: code, Times: 40})
			sent := len(b.srv.Calls())
			_, errs := acquireAll(t.Context(), s, claimsOf(1000))
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			batches := 0
			for _, op := range b.ops(sent) {
				if op == batchCall {
					batches++
				}
			}
			if batches <= 40 {
				t.Errorf("%d batches for 1,000 INSERTs that were throttled once, want more than the first 40", batches)
			}
		})
	}
}

// A role that allows no statements: everything works, one request in five minutes is refused, and the log says it once.
func TestRoleWithoutStatements(t *testing.T) {
	t.Parallel()
	denied := &ddbtypes.BatchStatementError{Code: ddbtypes.BatchStatementErrorCodeEnumAccessDenied}
	for name, answer := range map[string]func(statements int) (*dynamodb.BatchExecuteStatementOutput, error){
		"whole batch": func(int) (*dynamodb.BatchExecuteStatementOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDeniedException"}
		},
		"no such operation": func(int) (*dynamodb.BatchExecuteStatementOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "UnknownOperationException"}
		},
		"each statement": func(n int) (*dynamodb.BatchExecuteStatementOutput, error) {
			return &dynamodb.BatchExecuteStatementOutput{Responses: slices.Repeat([]ddbtypes.BatchStatementResponse{{Error: denied}}, n)}, nil
		},
	} {
		runBed(t, name, func(t *testing.T, b *bed) {
			var log bytes.Buffer
			s := b.storeWithPeer(func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			line := &batchLine{Client: s.client, answer: func(int, func() (*dynamodb.BatchExecuteStatementOutput, error)) (*dynamodb.BatchExecuteStatementOutput, error) {
				return answer(5)
			}}
			s.client = line
			leases, errs := acquireAll(t.Context(), s, claimsOf(5))
			must.Do(t, errors.Join(append(errs, completeAll(t.Context(), s, leases))...))
			if line.calls != 1 {
				t.Errorf("%d batches, want 1", line.calls)
			}
			synctest.Wait() // for the log
			if got := strings.Count(log.String(), "\n"); got != 1 {
				t.Errorf("%d lines in the log, want 1:\n%s", got, &log)
			}
			if got := s.Stats().Fallbacks; got != 5 {
				t.Errorf("Stats.Fallbacks: got %d, want 5", got)
			}
			deliver := func(round int) {
				claims := claimsOf(5)
				for i := range claims {
					claims[i].Key += fmt.Sprint(" round ", round)
				}
				leases, errs := acquireAll(t.Context(), s, claims)
				if err := errors.Join(append(errs, completeAll(t.Context(), s, leases))...); err != nil {
					t.Error(err)
				}
			}
			// They are tried again after five minutes, and refused.
			time.Sleep(deniedTime - time.Second)
			deliver(1)
			if line.calls != 1 {
				t.Errorf("%d batches within %s, want 1", line.calls, deniedTime)
			}
			time.Sleep(time.Second)
			deliver(2)
			if got := strings.Count(log.String(), "\n"); line.calls != 2 || got != 1 {
				t.Errorf("%d batches and %d lines after %s, want 2 and 1", line.calls, got, deniedTime)
			}
			// The role is changed.
			line.answer = func(_ int, next func() (*dynamodb.BatchExecuteStatementOutput, error)) (*dynamodb.BatchExecuteStatementOutput, error) {
				return next()
			}
			time.Sleep(deniedTime)
			deliver(3)
			if line.calls != 4 {
				t.Errorf("%d batches after the role was changed, want 4: acquires and completes", line.calls)
			}
		})
	}
}

// Delayed copies of whole batches arrive after everything else, and change nothing.
func TestDelayedCopyOfABatchChangesNothing(t *testing.T) {
	t.Parallel()
	for nth, name := range []string{1: "acquires", 2: "completes"} {
		if name == "" {
			continue
		}
		runBed(t, name, func(t *testing.T, b *bed) {
			s := b.storeWithPeer()
			const late = 20 * time.Second
			b.faults(fault.Rule{Op: batchCall, Nth: nth, Do: fault.Replay, Delay: late})
			claims := claimsOf(3)
			claims[2].Lease = 5 * time.Second
			leases, _ := acquireAll(t.Context(), s, claims)
			must.Do(t, completeAll(t.Context(), s, leases[:2]))
			b.release(s, leases[2])
			other := claims[2]
			other.Owner = "another"
			b.acquire(b.store(), other)
			before, sent := b.records(), len(b.srv.Calls())
			time.Sleep(2 * late)
			if got := b.ops(sent); !cmp.Equal(got, []string{batchCall}) {
				t.Fatalf("calls after the last step: got %v, want only the delayed copy", got)
			}
			if d := cmp.Diff(before, b.records()); d != "" {
				t.Errorf("the delayed copy changed the records, - before + after:\n%s", d)
			}
		})
	}
}

// A process is frozen while its acquires wait in a batch. When it is thawed it sends no acquire whose lease is over.
func TestFreezeBetweenBatches(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer(func(o *Options) { o.Linger = time.Second })
		look, frozen := s.clock.look, new(atomic.Int64)
		s.clock.look = func() moment {
			m, away := look(), time.Duration(frozen.Load())
			return moment{host: m.host.Add(away), wall: m.wall + away, mono: m.mono}
		}
		done := completeLater(b, s)
		sent := len(b.srv.Calls())
		errs := make(chan error, 3)
		for _, c := range claimsOf(3) {
			go func() { errs <- second(granted.Lease(s.Acquire(t.Context(), c))) }()
		}
		synctest.Wait()
		frozen.Store(int64(2 * lease))
		for range 3 {
			if err := <-errs; !errors.Is(err, errExpired) {
				t.Errorf("Acquire over a freeze: got error %v, want errExpired", err)
			}
		}
		if err := <-done; err != nil {
			t.Errorf("Complete over the freeze: got error %v, want nil: only the owner decides", err)
		}
		if got, want := b.ops(sent), []string{"UpdateItem"}; !cmp.Equal(got, want) {
			t.Errorf("calls: got %v, want only the complete", got)
		}
		if _, err := granted.Lease(s.Acquire(t.Context(), claimsOf(1)[0])); err != nil {
			t.Errorf("Acquire after the freeze: got error %v, want a lease", err)
		}
	})
}

// completeLater completes a record while others wait.
func completeLater(b *bed, s *Store) <-chan error {
	b.Helper()
	l := b.acquire(b.store(), claim("done"))
	done := make(chan error, 1)
	go func() { done <- s.Complete(b.Context(), l, dedup.Result{}) }()
	return done
}

// A caller whose context ends while its batch is under way: the store releases its lease when the batch is answered. After an
// answer that says nothing the caller does.
func TestCancelledDuringABatch(t *testing.T) {
	t.Parallel()
	for _, rule := range []fault.Rule{
		{Do: fault.Delay, Delay: time.Second},
		{Do: fault.Delay, Delay: 3 * time.Second}, // unknown
		{Do: fault.LoseReply},
		{Do: fault.Error, After: true},
	} {
		runBed(t, describe(rule), func(t *testing.T, b *bed) {
			s := b.storeWithPeer()
			claims := claimsOf(2)
			rule.Op, rule.Nth = batchCall, 1
			b.faults(rule)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond+time.Microsecond) // just sent
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := granted.Lease(s.Acquire(ctx, claims[0]))
				if err == nil {
					t.Error("cancelled Acquire: got a lease, want the context's error")
				}
				b.settle(s, claims[0], err)
			})
			var l dedup.Lease
			wg.Go(func() { l = b.acquire(s, claims[1]) })
			wg.Wait()
			time.Sleep(15 * time.Second)
			r, err := s.Inspect(t.Context(), claims[0].Key)
			if err != nil || !r.Until.IsZero() {
				t.Errorf("record of the cancelled acquire: got %+v, %v, want it released", r, err)
			}
			b.complete(s, l)
		})
	}
}
