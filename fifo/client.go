package fifo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Client is the part of the SQS client that a [Publisher] calls. It must end a call when the call's context ends. A wrapper
// must pass on the option functions: they turn off the SDK's own retries, which would go on after the deduplication
// interval.
//
// GetQueueAttributes is called once, for MaximumMessageSize, when the first event of more than 1 KiB is published.
type Client interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ Client = (*sqs.Client)(nil)
