package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

const (
	testTable = "dedup"
	testKey   = "billing#order-42"
	lease     = time.Minute
)

// bed is a server with a table, in the bubble of the test that makes it.
type bed struct {
	*testing.T
	srv *memdynamodb.Server
}

func newBed(t *testing.T) *bed {
	t.Helper()
	srv := memdynamodb.New()
	t.Cleanup(srv.Close)
	b := &bed{T: t, srv: srv}
	must.Do(t, CreateTable(t.Context(), b.client(srv), testTable))
	return b
}

// onBed runs a test in a bubble with a bed, beside other tests.
func onBed(t *testing.T, f func(t *testing.T, b *bed)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newBed(t)) })
}

// onStore is onBed for a test of one store.
func onStore(t *testing.T, f func(t *testing.T, b *bed, s *Store)) {
	t.Helper()
	onBed(t, func(t *testing.T, b *bed) { f(t, b, b.store()) })
}

// runBed runs a subtest in a bubble with a bed.
func runBed(t *testing.T, name string, f func(t *testing.T, b *bed)) {
	t.Helper()
	must.Run(t, name, func(t *testing.T) { f(t, newBed(t)) })
}

// runEmpty is runBed without a table.
func runEmpty(t *testing.T, name string, f func(t *testing.T, b *bed)) {
	t.Helper()
	must.Run(t, name, func(t *testing.T) {
		b := &bed{T: t, srv: memdynamodb.New()}
		t.Cleanup(b.srv.Close)
		f(t, b)
	})
}

// runStore is runBed for a test of one store.
func runStore(t *testing.T, name string, f func(t *testing.T, b *bed, s *Store)) {
	t.Helper()
	runBed(t, name, func(t *testing.T, b *bed) { f(t, b, b.store()) })
}

func (b *bed) client(rt http.RoundTripper) *dynamodb.Client {
	return b.clientOf(rt, "http://dynamodb.local")
}

func (b *bed) clientOf(rt http.RoundTripper, url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(url),
		HTTPClient:   &http.Client{Transport: rt},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

// store is a host, with a clock and an SDK client of its own.
func (b *bed) store(optFns ...func(*Options)) *Store {
	b.Helper()
	s := must.Get(New(b.client(b.srv), testTable, optFns...))(b)
	return s
}

// off sets a host's clock ahead of the server's by d, or behind it.
func off(d time.Duration) func(*Options) {
	return func(o *Options) { o.now = func() time.Time { return time.Now().Add(d) } }
}

func claim(owner string) dedup.Claim {
	return dedup.Claim{Key: testKey, Owner: owner, Lease: lease, Retention: 24 * time.Hour, ReceiveCount: 1}
}

func (b *bed) acquire(s *Store, c dedup.Claim) dedup.Lease {
	b.Helper()
	l, err := granted.Lease(s.Acquire(b.Context(), c))
	if err != nil {
		b.Fatalf("Acquire by %s: got error %v, want a lease", c.Owner, err)
	}
	return l
}

// settle does what dedup does with an acquire whose outcome is unknown.
func (b *bed) settle(s *Store, c dedup.Claim, err error) {
	b.Helper()
	if !errors.Is(err, dedup.ErrOutcomeUnknown) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	l := dedup.Lease{Key: c.Key, Owner: c.Owner, Retention: c.Retention}
	if err := s.Release(ctx, l, err); err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) {
		b.Errorf("Release of an acquire with an unknown outcome: got error %v, want nil or ErrLeaseLost", err)
	}
}

func (b *bed) complete(s *Store, l dedup.Lease) {
	b.Helper()
	if err := s.Complete(b.Context(), l, dedup.Result{}); err != nil {
		b.Fatalf("Complete by %s: got error %v, want nil", l.Owner, err)
	}
}

// faults starts a plan: its rules count calls from here on.
func (b *bed) faults(rules ...fault.Rule) { b.srv.Set(fault.Plan{Seed: 1, Rules: rules}) }

// item is the record's attributes without their types: strings and numbers as they are on the wire.
func (b *bed) item(table string) map[string]string {
	b.Helper()
	items := b.srv.Items(table)
	switch len(items) {
	case 0:
		return nil
	case 1:
	default:
		b.Fatalf("table %s has %d items, want at most 1", table, len(items))
	}
	var wire map[string]map[string]any
	must.Do(b, json.Unmarshal(items[0], &wire))
	plain := map[string]string{}
	for name, v := range wire {
		for _, x := range v {
			raw, ok := x.(string)
			if !ok {
				text, _ := json.Marshal(x)
				raw = string(text)
			}
			plain[name] = raw
		}
	}
	return plain
}

// units are the capacity units that were consumed after the given number of calls.
func (b *bed) units(since int) (sum float64) {
	for _, c := range b.srv.Calls()[since:] {
		sum += c.Units
	}
	return sum
}

// ops are the operations that were called after the given number of calls.
func (b *bed) ops(since int) []string {
	var ops []string
	for _, c := range b.srv.Calls()[since:] {
		ops = append(ops, c.Op)
	}
	return ops
}

// line is a network connection that a test can cut, as a crash does.
type line struct {
	to http.RoundTripper

	mu     sync.Mutex
	before func(op string) error
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	if before != nil {
		if err := before(r.Header.Get("X-Amz-Target")); err != nil {
			return nil, err
		}
	}
	return l.to.RoundTrip(r)
}

func (l *line) set(before func(op string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = before
}

// refusalCounter counts the updates that their condition refused.
type refusalCounter struct {
	Client
	n int
}

func (r *refusalCounter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := r.Client.UpdateItem(ctx, in, optFns...)
	if _, refused := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); refused {
		r.n++
	}
	return out, err
}

const batchCall = "BatchExecuteStatement"

// storeWithPeer is a store that always has a peer, so that every statement waits for others.
func (b *bed) storeWithPeer(optFns ...func(*Options)) *Store {
	b.Helper()
	s := b.store(optFns...)
	s.peers.enter("peer", time.Now().Add(1000*time.Hour))
	return s
}

// claimsOf returns one claim for each of n events.
func claimsOf(n int) []dedup.Claim {
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
		wg.Go(func() { leases[i], errs[i] = granted.Lease(s.Acquire(ctx, c)) })
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

// records are the table's items by their keys, each attribute as it is on the wire without its type.
func (b *bed) records() map[string]map[string]string {
	b.Helper()
	records := map[string]map[string]string{}
	for _, raw := range b.srv.Items(testTable) {
		var wire map[string]map[string]string
		must.Do(b, json.Unmarshal(raw, &wire))
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

// batchLine is a client whose batches a test answers.
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
