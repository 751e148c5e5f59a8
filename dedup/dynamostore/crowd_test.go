package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/storetest"
)

const sharedCall = "BatchExecuteStatement"

// busy is a store at which somebody else is always at work, so that every statement waits for others.
func (b *bed) busy(optFns ...func(*Options)) *Store {
	b.Helper()
	s := b.store(optFns...)
	s.at.enter("somebody else", time.Now().Add(1000*time.Hour))
	return s
}

// crowd is one claim each for n events.
func crowd(n int) []dedup.Claim {
	claims := make([]dedup.Claim, n)
	for i := range claims {
		claims[i] = claim(fmt.Sprint("owner ", i))
		claims[i].Key = fmt.Sprint("billing#event-", i)
	}
	return claims
}

// acquireAll acquires at the same instant.
func acquireAll(ctx context.Context, s *Store, claims []dedup.Claim) ([]dedup.Lease, []error) {
	leases, errs := make([]dedup.Lease, len(claims)), make([]error, len(claims))
	var wg sync.WaitGroup
	for i, c := range claims {
		wg.Go(func() { leases[i], errs[i] = s.Acquire(ctx, c) })
	}
	wg.Wait()
	return leases, errs
}

func completeAll(ctx context.Context, s *Store, leases []dedup.Lease) error {
	errs := make([]error, len(leases))
	var wg sync.WaitGroup
	for i, l := range leases {
		wg.Go(func() { errs[i] = s.Complete(ctx, l, dedup.Result{}) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// crowded gives every acquire and every complete a companion of another event that shares its call.
type crowded struct {
	*Store
	n *atomic.Int64
}

func (c crowded) Acquire(ctx context.Context, cl dedup.Claim) (dedup.Lease, error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		n := c.n.Add(1)
		companion := claim(fmt.Sprint("companion ", n))
		companion.Key, companion.Lease = fmt.Sprint("companion#", n), time.Second
		_, _ = c.Store.Acquire(context.WithoutCancel(ctx), companion) // what it is answered is not the case's business
	}()
	l, err := c.Store.Acquire(ctx, cl)
	<-done
	return l, err
}

func (c crowded) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		lost := dedup.Lease{Key: "companion#0", Owner: fmt.Sprint("companion ", c.n.Add(1))}
		_ = c.Store.Complete(context.WithoutCancel(ctx), lost, dedup.Result{}) // refused: it has no record
	}()
	err := c.Store.Complete(ctx, l, r)
	<-done
	return err
}

// Every sentence of the contract also holds where the record is written in a call that it shares.
func TestConformanceInSharedCalls(t *testing.T) {
	t.Parallel()
	var shared atomic.Int64
	t.Run("cases", func(t *testing.T) {
		storetest.Run(t, storetest.Harness{
			New: func(t *testing.T) dedup.Store {
				s := newBed(t).busy(func(o *Options) { o.Linger = 20 * time.Millisecond })
				t.Cleanup(func() { shared.Add(s.Stats().Batches) })
				return crowded{s, new(atomic.Int64)}
			},
		})
	})
	if got := shared.Load(); got < 50 {
		t.Errorf("the cases made %d shared calls: they have not tested them", got)
	}
}

// records are the table's items by their keys, each attribute as it is on the wire without its type.
func (b *bed) records() map[string]map[string]string {
	b.Helper()
	records := map[string]map[string]string{}
	for _, raw := range b.srv.Items(testTable) {
		var wire map[string]map[string]string
		if err := json.Unmarshal(raw, &wire); err != nil {
			b.Fatal(err)
		}
		plain := map[string]string{}
		for name, v := range wire {
			for _, x := range v {
				plain[name] = x
			}
		}
		records[plain[attrID]] = plain
	}
	return records
}

// batchLine is a client whose shared calls a test answers.
type batchLine struct {
	Client
	answer func(call int, next func() (*dynamodb.BatchExecuteStatementOutput, error)) (*dynamodb.BatchExecuteStatementOutput, error)
	calls  int
}

func (l *batchLine) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, optFns ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	l.calls++
	return l.answer(l.calls, func() (*dynamodb.BatchExecuteStatementOutput, error) {
		return l.Client.BatchExecuteStatement(ctx, in, optFns...)
	})
}
