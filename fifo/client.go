package fifo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/stack"
	"github.com/sqsonce/sqsonce/internal/thaw"
)

// Client is the part of the SQS client that a [Publisher] calls. It must end a call when the call's context ends. A wrapper
// must pass on the context and the option functions. The option functions turn off the SDK's own retries, which would go on
// after the deduplication interval, and report whether a request was sent. A call that panics fails, with an unknown outcome.
//
// The publisher may repeat a call that hasn't sent anything. After 20 s without a response it closes the connections that were
// idle meanwhile, and calls once more for each of them. They may have died in a freeze of the process.
//
// An entry of the answer counts as sent only with the MD5OfMessageBody of its body, which SQS always returns. An error counts
// as a refusal by SQS if it has an answer's code and HTTP status, like the SDK's errors.
//
// The publisher calls GetQueueAttributes for MaximumMessageSize, alongside the first event of more than 1 KiB with its [Carry],
// and once more after a failure. If that fails too, it assumes 1 MiB, and SQS refuses messages that are too large. Each failure
// is a line at WARN.
type Client interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ Client = (*sqs.Client)(nil)

var errNoAnswer = errors.New("fifo: the client returned neither an answer nor an error: correct the wrapper that was given to NewPublisher")

// safeClient makes a failed call of one that panics, ends its goroutine, or returns neither an answer nor an error. A Client
// may be the user's wrapper. A call doesn't use a connection from before a freeze of the process, see package thaw.
type safeClient struct {
	client Client
	conns  thaw.Conns
}

// safely calls f, and once more for each connection from before a freeze that it gets: only the last call sends its request.
func (s *safeClient) safely(ctx context.Context, f func(context.Context) (answered bool, err error)) error {
	return s.conns.Do(ctx, func(ctx context.Context) error {
		return host.Contain(func() error {
			answered, err := f(ctx)
			if !answered && err == nil {
				return errNoAnswer
			}
			return err
		})
	})
}

// SendMessageBatch sends a request once, and returns how far it got.
func (s *safeClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput) (out *sqs.SendMessageBatchOutput, w *sendWatch, err error) {
	err = s.safely(ctx, func(ctx context.Context) (_ bool, err error) {
		w = &sendWatch{}
		stack.Grow()
		out, err = s.client.SendMessageBatch(ctx, in, singleAttempt, w.install)
		return out != nil, err
	})
	return out, w, err
}

func (s *safeClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput) (out *sqs.GetQueueAttributesOutput, err error) {
	err = s.safely(ctx, func(ctx context.Context) (_ bool, err error) {
		out, err = s.client.GetQueueAttributes(ctx, in)
		return out != nil, err
	})
	return out, err
}

// clientRegion returns the region of an SDK client, or "" where it says nothing about the queue's: a client with an endpoint of
// its own is that of an emulator or a proxy.
func clientRegion(c Client) (region string) {
	sdk, ok := c.(interface{ Options() sqs.Options })
	if !ok || host.IsNil(c) {
		return ""
	}
	_ = host.Recover(func() { // a wrapper's method
		if o := sdk.Options(); o.BaseEndpoint == nil {
			region = o.Region
		}
	})
	return region
}
