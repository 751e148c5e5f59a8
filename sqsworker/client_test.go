package sqsworker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestHTTPClient(t *testing.T) {
	t.Parallel()
	tr := HTTPClient(2000).GetTransport()
	if tr.MaxIdleConnsPerHost != 611 || tr.MaxIdleConns < tr.MaxIdleConnsPerHost || tr.ResponseHeaderTimeout <= 20*time.Second {
		t.Errorf("%d per host, %d, response timeout %s", tr.MaxIdleConnsPerHost, tr.MaxIdleConns, tr.ResponseHeaderTimeout)
	}
}

// TestDeletesAtOnce: as many deletes as receivers, and at least sixteen, of 200 ms at most. While others wait, their batches
// fill up. A stop sends all at once.
func TestDeletesAtOnce(t *testing.T) {
	for _, tc := range []struct {
		receivers, want int
		stop            bool
	}{{receivers: 2, want: minDeletes}, {receivers: 20, want: 20}, {receivers: 2, stop: true}} {
		bubble(t, setup{}, func(x *fixture) {
			const messages = 400
			x.sendMany(messages)
			calls := &countedClient{Client: x.c}
			done := make(chan struct{})
			j := x.startWith(calls, func(context.Context, *sqsonce.Message) error { <-done; return nil }, func(o *Options) {
				o.Concurrency, o.MaxInFlight, o.MaxReceivers = messages, messages, tc.receivers
			})
			time.Sleep(time.Minute)
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opDelete, Prob: 1, Do: fault.Delay, Delay: slowCall}}})
			if tc.stop {
				j.cancel()
				synctest.Wait()
			}
			close(done)
			time.Sleep(time.Minute)
			j.stopClean()
			x.wantEmpty()
			if tc.stop {
				if calls.deletes.most < messages/host.MaxBatch {
					t.Errorf("%d deletes at once in a stop, want all", calls.deletes.most)
				}
				return
			}
			if n := x.calls(opDelete); calls.deletes.most != tc.want || n != messages/host.MaxBatch {
				t.Errorf("%d receivers: %d deletes at once, %d in all; want %d, %d", tc.receivers, calls.deletes.most, n, tc.want, messages/host.MaxBatch)
			}
		})
	}
}

// countedClient counts the most calls of a kind that were under way at once.
type countedClient struct {
	Client
	receives, deletes, changes atOnce
}

type atOnce struct {
	mu      sync.Mutex
	n, most int
}

func (a *atOnce) begin() (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	a.most = max(a.most, a.n)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.n--
	}
}

func (a *atOnce) mostSoFar() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most
}

func (c *countedClient) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, optFns ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	defer c.receives.begin()()
	return c.Client.ReceiveMessage(ctx, in, optFns...)
}

func (c *countedClient) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, optFns ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	defer c.deletes.begin()()
	return c.Client.DeleteMessageBatch(ctx, in, optFns...)
}

func (c *countedClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, optFns ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	defer c.changes.begin()()
	return c.Client.ChangeMessageVisibilityBatch(ctx, in, optFns...)
}
