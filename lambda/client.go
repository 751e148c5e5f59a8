package lambda

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Client is the part of the SQS client that the host calls for retries and rejects. *sqs.Client implements it.
//
// Its HTTP client should have a response timeout; the SDK's default client has none. The function's role needs
// sqs:ChangeMessageVisibility, sqs:GetQueueUrl and sqs:GetQueueAttributes on the queue, and sqs:SendMessage on the dead-letter
// queue. Without sqs:GetQueueUrl the URL is made from the ARN. Without sqs:GetQueueAttributes, which the mapping needs too,
// the host does not know the visibility timeout and the last receive of a message: see [Options].
type Client interface {
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
}

var _ Client = (*sqs.Client)(nil)
