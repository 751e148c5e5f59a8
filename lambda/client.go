package lambda

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Client is what the host needs of SQS for retries and rejects. *sqs.Client implements it.
//
// Its HTTP client should have a response timeout, which the SDK's default has not. Actions of the function's role:
// sqs:ChangeMessageVisibility and sqs:GetQueueUrl on the queue (without the latter the URL is made from the ARN),
// sqs:SendMessage on the dead-letter queue.
type Client interface {
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
}

var _ Client = (*sqs.Client)(nil)
