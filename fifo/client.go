package fifo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Client is what a [Publisher] needs of the SQS client. It must honour its contexts, and a wrapper must pass the option
// functions on: they switch off the SDK's own retries, which would outlive the deduplication window.
//
// GetQueueAttributes is asked once for MaximumMessageSize, when the first event of more than 1 KiB comes.
type Client interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ Client = (*sqs.Client)(nil)
