package lambda

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
	"github.com/sqsonce/sqsonce/internal/thaw"
)

// safeClient calls a [Client] whose calls may panic, return neither an answer nor an error, wait on a connection that died in
// a freeze, or ignore their context. Such a call doesn't delay an invocation beyond the context of the call. A call that
// continues is abandoned, like a handler. The errors of the calls say whether SQS has answered.
type safeClient struct {
	next      Client
	conns     thaw.Conns
	abandoned *atomic.Int64 // calls and handlers that have not returned yet
}

func withEvidence(o *sqs.Options) {
	o.APIOptions = append(o.APIOptions, sdkhttp.Evidence)
	o.HTTPClient = sdkhttp.Whole(o.HTTPClient)
}

var errNoAnswer = errors.New("the client returned neither an answer nor an error")

func (c *safeClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, optFns ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return ask(ctx, c, in, c.next.ChangeMessageVisibilityBatch, optFns)
}

func (c *safeClient) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, optFns ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return ask(ctx, c, in, c.next.DeleteMessageBatch, optFns)
}

func (c *safeClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, optFns ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return ask(ctx, c, in, c.next.SendMessage, optFns)
}

func (c *safeClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return ask(ctx, c, in, c.next.GetQueueAttributes, optFns)
}

func (c *safeClient) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return ask(ctx, c, in, c.next.GetQueueUrl, optFns)
}

// ask calls f on a goroutine of its own and waits for its answer until ctx ends.
func ask[In, Out any](
	ctx context.Context, c *safeClient, in *In, f func(context.Context, *In, ...func(*sqs.Options)) (*Out, error), optFns []func(*sqs.Options),
) (*Out, error) {
	var out *Out
	var err error
	call := func(ctx context.Context) (err error) {
		if out, err = f(ctx, in, append(slices.Clip(optFns), withEvidence)...); err == nil && out == nil {
			return errNoAnswer
		}
		return err
	}
	if !await(ctx, c.abandoned, func() {
		host.Run(func() error { return c.conns.Do(ctx, call) }, func(failed error) { err = failed })
	}) {
		return nil, context.Cause(ctx)
	}
	return out, err
}
