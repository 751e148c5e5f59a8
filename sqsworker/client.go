package sqsworker

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Client is what a worker needs of SQS. *sqs.Client implements it.
//
// SendMessage and GetQueueUrl are only called for dead-letter queues, GetQueueAttributes only when Run starts.
//
// The options of each call switch off the SDK's retries, which the worker makes itself, and its check of checksums, which
// fails ten messages for one. A wrapper has to pass them on.
type Client interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
}

var _ Client = (*sqs.Client)(nil)

// HTTPClient returns a client for sqs.Options.HTTPClient (or aws.Config.HTTPClient) with the connections and timeouts
// that a worker with inFlight messages in flight needs.
//
// The SDK's own default keeps ten idle connections per host, so that a busy worker opens a new one, with its TLS
// handshake, for most calls; and it has no response timeout, so that a long poll on a dead connection waits for the
// kernel to notice. The buffers, 96 KB for each connection that is open, hold a receive of ten messages with bodies of
// 5 KB, the delete of ten, and what package dynamostore sends for 25, so that each takes one read or write: give it to the
// DynamoDB client as well. As memory without pointers they also have the garbage collector run less often, in a process
// with little else in its heap.
//
// A worker has so many calls under way at once, and opens so many connections and a few more: Options.Receivers receives;
// as many deletes, at least 16; heartbeats for the messages whose extension is due, ten in each; and a send for each
// message on its way to the dead-letter queue. Only a stop has more.
func HTTPClient(inFlight int) *awshttp.BuildableClient {
	// Receives, deletes and visibility changes take ten messages each; the rest is for batches that are not full.
	conns := max(16, 3*(inFlight/maxBatch+1)+8)
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = conns
		t.MaxIdleConns = max(t.MaxIdleConns, 2*conns)
		t.ResponseHeaderTimeout = maxWait + receiveMargin
		t.ReadBufferSize, t.WriteBufferSize = 64<<10, 32<<10
	})
}

// maxBatch is the most messages of one SQS call.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
const maxBatch = 10

// receiveMargin is what a receive may take beyond its wait. A shorter timeout would end polls that SQS has already
// filled, and strand what they carry until its visibility timeout.
const receiveMargin = 10 * time.Second

// once makes a call a single attempt. The worker retries by itself: it knows how long a lease still holds, and after a
// lost reply the SDK would repeat a long poll inside a deadline that only fits one.
func once(o *sqs.Options) {
	o.Retryer = aws.NopRetryer{}
}
