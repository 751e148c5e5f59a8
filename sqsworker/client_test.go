package sqsworker

import (
	"context"
	"io/fs"
	"sync"
	"sync/atomic"
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
			j.stopEmptyAfter(time.Minute)
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

// TestTimeoutThatFails: the message fails, its handler does not run, and others are not touched.
func TestTimeoutThatFails(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("bad", "good")
		var r runs
		var failed atomic.Bool
		j := x.start(r.take(time.Second), func(o *Options) {
			o.Timeout = func(m *sqsonce.Message) time.Duration {
				if m.Body == "bad" && failed.CompareAndSwap(false, true) {
					panic("boom")
				}
				return time.Minute
			}
		})
		time.Sleep(500 * time.Millisecond)
		if s := j.Stats(); s.Failed != 1 || s.Running != 1 || r.count("bad") != 0 || !x.log.has("client_test.go") {
			t.Errorf("runs %v, %+v, want the bad one failed with its stack, and the other one running", r.list(), s)
		}
		j.stopEmptyAfter(time.Minute)
		if r.count("bad") != 1 || r.count("good") != 1 {
			t.Errorf("runs: %v, want each once", r.list())
		}
	})
}

// TestTimeoutBeyondMaxExtension: it is logged once for a worker. 0 and negative are none.
func TestTimeoutBeyondMaxExtension(t *testing.T) {
	for timeout, want := range map[time.Duration]int{time.Minute: 0, time.Minute + 1: 1, 0: 0, -time.Minute: 0} {
		bubble(t, setup{}, func(x *fixture) {
			x.send("a", "b", "c")
			j := x.start(func(ctx context.Context, _ *sqsonce.Message) error {
				if _, limited := ctx.Deadline(); limited != (timeout > 0) {
					t.Errorf("timeout of %s: the context has a deadline: %t", timeout, limited)
				}
				return ctx.Err()
			}, func(o *Options) { o.MaxExtension, o.Timeout = time.Minute, timeoutOf(timeout) })
			time.Sleep(time.Second)
			j.stopClean()
			if n := x.log.count("setting=Options.Timeout"); n != want {
				t.Errorf("timeout of %s: logged %d times, want %d", timeout, n, want)
			}
		})
	}
}

// brokenClient fails every second call of each kind.
type brokenClient struct {
	Client
	fail  func() error
	mu    sync.Mutex
	calls map[string]int
}

func (c *brokenClient) broken(op string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[op]++
	return c.calls[op]%2 == 1
}

func broken[In, Out any](c *brokenClient, op string, call func(context.Context, *In, ...func(*sqs.Options)) (*Out, error),
	ctx context.Context, in *In, fns []func(*sqs.Options),
) (*Out, error) {
	if c.broken(op) {
		return nil, c.fail()
	}
	return call(ctx, in, fns...)
}

func (c *brokenClient) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, fns ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return broken(c, "receive", c.Client.ReceiveMessage, ctx, in, fns)
}

func (c *brokenClient) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, fns ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return broken(c, "delete", c.Client.DeleteMessageBatch, ctx, in, fns)
}

func (c *brokenClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, fns ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return broken(c, "change", c.Client.ChangeMessageVisibilityBatch, ctx, in, fns)
}

func (c *brokenClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, fns ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return broken(c, "send", c.Client.SendMessage, ctx, in, fns)
}

func (c *brokenClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, fns ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return broken(c, "attributes", c.Client.GetQueueAttributes, ctx, in, fns)
}

func (c *brokenClient) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, fns ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return broken(c, "url", c.Client.GetQueueUrl, ctx, in, fns)
}

// TestClientThatPanics: a call of a client that panics, answers nothing, or returns an error that cannot be asked, is a call
// that failed.
func TestClientThatPanics(t *testing.T) {
	for name, fail := range map[string]func() error{
		"panics":        func() error { panic("broken") },
		"nil":           func() error { return nil },
		"a typed error": func() error { var e *fs.PathError; return e },
	} {
		t.Run(name, func(t *testing.T) {
			bothKinds(t, setup{maxReceives: 100}, func(x *fixture) {
				c := &brokenClient{Client: x.c, fail: fail, calls: map[string]int{}}
				x.send("a:a", "bad", "c:c")
				j := x.startWith(c, rejectBad, func(o *Options) { o.VisibilityTimeout = 30 * time.Second })
				time.Sleep(10 * time.Minute)
				x.send("d:d")
				j.stopEmptyAfter(20 * time.Minute)
				if len(x.dead()) != 1 {
					x.Errorf("%d dead-lettered, want one", len(x.dead()))
				}
				for _, op := range []string{"receive", "delete", "send", "attributes", "url"} {
					if c.calls[op] == 0 {
						x.Errorf("no %s", op)
					}
				}
			})
		})
	}
}
