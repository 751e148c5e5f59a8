package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// stall is a network that delivers nothing for a time, and then everything, also what its sender has given up.
type stall struct {
	to      http.RoundTripper
	reverse bool

	mu   sync.Mutex
	on   bool
	held []func()
}

type answer struct {
	*http.Response
	error
}

func (n *stall) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	if !n.on {
		n.mu.Unlock()
		return n.to.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		n.mu.Unlock()
		return nil, err
	}
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	answers := make(chan answer, 1)
	n.held = append(n.held, func() {
		resp, err := n.to.RoundTrip(late)
		answers <- answer{resp, err}
	})
	n.mu.Unlock()
	select {
	case a := <-answers:
		return a.Response, a.error
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (n *stall) end() {
	n.mu.Lock()
	n.on = false
	held := n.held
	n.mu.Unlock()
	if n.reverse {
		slices.Reverse(held)
	}
	for _, deliver := range held {
		deliver()
	}
}

// The network stalls while 40 events are acquired, and then delivers the requests of those that were given up, in order or
// the last one first. No handler has run, so no event looks like a crash.
func TestStallIsNoCrash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lease, stalled, patience time.Duration
		released                 bool // before, by another owner
		redelivered              int  // receive count above 1: not batched
	}{
		{lease: 2 * time.Second, stalled: 3 * time.Second},
		{lease: 2 * time.Second, stalled: 3 * time.Second, redelivered: 1},
		{lease: 30 * time.Second, stalled: 8 * time.Second},
		{lease: 30 * time.Second, stalled: 8 * time.Second, redelivered: 1, released: true},
		{lease: 30 * time.Second, stalled: 3 * time.Second, patience: 100 * time.Millisecond},
		{lease: 30 * time.Second, stalled: 3 * time.Second, patience: 100 * time.Millisecond, redelivered: 1},
	} {
		for _, reverse := range []bool{false, true} {
			runBed(t, fmt.Sprintf("%+v reverse=%t", tt, reverse), func(t *testing.T, b *bed) {
				n := &stall{to: b.srv, reverse: reverse}
				s := must.Get(New(b.client(n), testTable))(t)
				o := must.Get(dedup.New(s, "billing", func(o *dedup.Options) { o.LeaseDuration, o.OnCrash, o.CacheSize = tt.lease, dedup.OnCrashBlock, -1 }))(t)
				runs := 0
				var mu sync.Mutex
				deliver := func(ctx context.Context, h error) []error {
					errs := make([]error, 40)
					var all sync.WaitGroup
					for i := range errs {
						all.Go(func() {
							m := &sqsonce.Message{ID: fmt.Sprint(i), QueueARN: "arn:aws:sqs:eu-west-1:1:orders", ReceiveCount: 1 + tt.redelivered}
							errs[i] = o.Handler(func(context.Context, *sqsonce.Message) error {
								mu.Lock()
								defer mu.Unlock()
								runs++
								return h
							})(ctx, m)
						})
					}
					all.Wait()
					return errs
				}
				failed := errors.New("failed")
				if tt.released {
					deliver(t.Context(), failed)
				}
				before := runs
				n.on = true
				time.AfterFunc(tt.stalled, n.end)
				ctx, cancel := t.Context(), func() {}
				if tt.patience > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.patience)
				}
				defer cancel()
				first := deliver(ctx, nil)
				ran := runs - before
				time.Sleep(tt.stalled + 2*tt.lease + 10*time.Second)
				for i, err := range deliver(t.Context(), nil) {
					if err != nil {
						t.Fatalf("event %d: got error %v, before that %v; want its handler to run", i, err, first[i])
					}
				}
				if runs-before != 40 {
					t.Errorf("%d runs, %d of them in the stall, want 40", runs-before, ran)
				}
			})
		}
	}
}

// During a freeze all idle connections of the client break, and the client is not informed. After it no call waits for an
// answer on one of them: neither the first, nor those that follow its answer.
func TestConnectionsThatDiedInAFreeze(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := memdynamodb.New()
		t.Cleanup(srv.Close)
		n := thawtest.New(t, srv)
		b := &bed{T: t}
		client := dynamodb.New(b.client(nil).Options(), func(o *dynamodb.Options) { o.HTTPClient = n.Client() })
		must.Do(t, CreateTable(t.Context(), client, testTable))
		s := must.Get(New(client, testTable, func(o *Options) { o.MaxBatch = -1 }))(t)
		invocation := func(i int) {
			var wg sync.WaitGroup
			for k := range 8 {
				wg.Go(func() {
					c := claim(fmt.Sprint("owner ", i, k))
					c.Key = fmt.Sprint("billing#", i, "-", k)
					l, err := granted.Lease(s.Acquire(t.Context(), c))
					if err == nil {
						err = s.Complete(t.Context(), l, dedup.Result{})
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		invocation(1)
		n.Kill()
		time.Sleep(time.Minute)
		start := time.Now()
		invocation(2)
		if took := time.Since(start); took != 2*thawtest.Latency {
			t.Errorf("after the freeze: took %s, want that of two answers", took)
		}
	})
}
