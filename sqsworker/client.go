package sqsworker

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// Client is what a worker needs of SQS. *sqs.Client implements it.
//
// SendMessage and GetQueueUrl are called for dead-letter queues only, GetQueueAttributes when Run starts, and once a minute
// while it was not answered.
//
// The options of each call switch off the SDK's retries, because the worker retries itself, and its check of checksums,
// which fails ten messages for one. They also tell whether SQS has answered. A wrapper has to pass the options on: of another
// one no answer is known to be SQS's, and no error ends Run. A call that panics, or
// that returns neither an answer nor an error, is a call that failed.
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
// The SDK's default client keeps ten idle connections per host, so a busy worker opens a new one, with its TLS handshake,
// for most calls. It also has no response timeout, so a long poll on a dead connection waits until the kernel notices.
//
// The buffers take 96 KB for each open connection. They hold a receive of ten messages with bodies of 5 KB, a delete of
// ten, and a batch of 25 records of package dynamostore, so that each takes one read or write. Give the client to the
// DynamoDB client as well.
//
// At most these calls of a worker are under way at once, each on a connection: Options.MaxReceivers receives; as many
// deletes, and at least 16; a heartbeat call for each ten messages whose extension is due; and a send for each message
// that goes to the dead-letter queue. Only a stop makes more, and answers that are slow: deletes that take longer than
// 200 ms, and calls that are made again while their answer is overdue.
func HTTPClient(inFlight int) *awshttp.BuildableClient {
	// Receives, deletes and visibility changes take ten messages each; the rest is for batches that are not full.
	conns := max(16, 3*(inFlight/host.MaxBatch+1)+8)
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = conns
		t.MaxIdleConns = max(t.MaxIdleConns, 2*conns)
		t.ResponseHeaderTimeout = maxWait + receiveMargin
		t.ReadBufferSize, t.WriteBufferSize = 64<<10, 32<<10
	})
}

const (
	// callTimeout is how long a delete, a release or an extension may take before it is tried again. Deletes and extensions
	// go on waiting for the answer meanwhile, at most maxPatience.
	callTimeout = 5 * time.Second
	maxPatience = time.Minute
	// receiveMargin is what a receive may take beyond its wait. A shorter timeout would cancel polls that SQS has already
	// answered; their messages would stay hidden for a visibility timeout.
	receiveMargin = 20 * time.Second
	// sendTimeout limits a send to the dead-letter queue, with the SDK's own retries.
	sendTimeout = 10 * time.Second
)

// singleAttempt switches off the SDK's retries. The worker retries itself: it knows how long a lease still lasts, and
// after a lost reply the SDK would repeat a long poll inside a deadline that fits only one.
func singleAttempt(o *sqs.Options) {
	o.Retryer = aws.NopRetryer{}
	withEvidence(o)
}

// withEvidence makes the error of a call say whether SQS has answered: see errorCode.
func withEvidence(o *sqs.Options) { o.APIOptions = append(o.APIOptions, sdkhttp.Evidence) }
