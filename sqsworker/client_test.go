package sqsworker

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func TestHTTPClient(t *testing.T) {
	t.Parallel()
	tr := HTTPClient(2000).GetTransport()
	if tr.MaxIdleConnsPerHost != 611 || tr.MaxIdleConns < tr.MaxIdleConnsPerHost || tr.ResponseHeaderTimeout <= 20*time.Second {
		t.Errorf("%d per host, %d, response timeout %s", tr.MaxIdleConnsPerHost, tr.MaxIdleConns, tr.ResponseHeaderTimeout)
	}
}

// TestConnections: over real HTTP a busy worker opens a connection for each call that may be under way at once, and at most
// ten more. If connections were closed between calls, there would be a new one, with a handshake, for each call.
func TestConnections(t *testing.T) {
	const messages, inFlight = 6000, 1000
	srv := memsqs.New()
	defer srv.Close()
	var opened atomic.Int64
	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond) // calls overlap as they do over a network
		srv.ServeHTTP(w, r)
	}))
	ts.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	ts.Start()
	defer ts.Close()

	x := newFixture(t, srv, setup{})
	x.sendMany(messages)
	calls := &countedClient{Client: sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &ts.URL, HTTPClient: HTTPClient(inFlight),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})}
	j := x.startWith(calls, ok, func(o *Options) {
		o.Concurrency, o.MaxInFlight, o.MaxReceivers, o.WaitTime, o.VisibilityTimeout = 100, inFlight, 16, time.Second, time.Second
	})
	for len(x.queued()) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	j.stopClean()
	// More deletes than minDeletes only where this machine is slow: TestDeletesAtOnce has virtual time.
	receivers, deleters, heartbeats := j.opts.MaxReceivers, inFlight/host.MaxBatch, inFlight/host.MaxBatch
	if calls.receives.most > receivers || calls.deletes.most > deleters || calls.changes.most > heartbeats {
		t.Errorf("at once: %d receives of at most %d, %d deletes of at most %d, %d heartbeats of at most %d",
			calls.receives.most, receivers, calls.deletes.most, deleters, calls.changes.most, heartbeats)
	}
	// Go opens some for nothing: another one became idle meanwhile.
	if n := opened.Load(); n > int64(receivers+deleters+heartbeats+10) {
		t.Errorf("%d connections for %d receivers, %d deleters and %d heartbeats", n, receivers, deleters, heartbeats)
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
