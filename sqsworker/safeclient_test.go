package sqsworker

import (
	"context"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

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
			for _, fifo := range []bool{false, true} {
				bubble(t, setup{fifo: fifo, maxReceives: 100}, func(x *fixture) {
					c := &brokenClient{Client: x.c, fail: fail, calls: map[string]int{}}
					x.send("a:a", "bad", "c:c")
					j := x.startWith(c, rejectBad, func(o *Options) { o.VisibilityTimeout = 30 * time.Second })
					time.Sleep(10 * time.Minute)
					x.send("d:d")
					time.Sleep(20 * time.Minute)
					if err := j.stop(); err != nil {
						t.Errorf("Run: got %v", err)
					}
					x.wantEmpty()
					if len(x.dead()) != 1 {
						t.Errorf("%d dead-lettered, want one", len(x.dead()))
					}
					for _, op := range []string{"receive", "delete", "send", "attributes", "url"} {
						if c.calls[op] == 0 {
							t.Errorf("no %s", op)
						}
					}
				})
			}
		})
	}
}
