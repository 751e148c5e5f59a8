package sqsworker

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/host"
)

// safeClient makes a failed call of one that panics, or that returns neither an answer nor an error. A Client may be the
// user's wrapper: its panic on a goroutine of a call would end the process.
type safeClient struct{ client Client }

var errNoAnswer = errors.New("sqsworker: the client returned neither an answer nor an error: correct the wrapper that was given to New")

func safely[In, Out any](ctx context.Context, in *In, optFns []func(*sqs.Options),
	call func(context.Context, *In, ...func(*sqs.Options)) (*Out, error),
) (out *Out, err error) {
	if panicked := host.Recover(func() {
		if out, err = call(ctx, in, optFns...); out == nil && err == nil {
			err = errNoAnswer
		}
	}); panicked != nil {
		return nil, panicked
	}
	return out, host.Usable(err)
}

func (s safeClient) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, optFns ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return safely(ctx, in, optFns, s.client.ReceiveMessage)
}

func (s safeClient) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, optFns ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return safely(ctx, in, optFns, s.client.DeleteMessageBatch)
}

func (s safeClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, optFns ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return safely(ctx, in, optFns, s.client.ChangeMessageVisibilityBatch)
}

func (s safeClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, optFns ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return safely(ctx, in, append(optFns[:len(optFns):len(optFns)], withEvidence), s.client.SendMessage) // with the SDK's own retries
}

func (s safeClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return safely(ctx, in, optFns, s.client.GetQueueAttributes)
}

func (s safeClient) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return safely(ctx, in, optFns, s.client.GetQueueUrl)
}
