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

// Client is the part of the SQS client that a worker calls. *sqs.Client implements it.
//
// docs/worker.md lists the permissions, and the consequence of each missing one. The worker calls SendMessage and GetQueueUrl for
// dead-letter queues only. It calls GetQueueAttributes when Run starts, once a minute while SQS has not answered it, and before a
// receive that follows on one without an answer.
//
// The options of each call switch off the SDK's retries, because the worker retries itself. They also switch off its check of
// checksums, which fails ten messages for one, and tell whether SQS has answered. If you wrap the client, pass the options
// on. Otherwise the worker can't know that an answer is SQS's, and errors don't end Run. A call that panics, or that returns
// neither an answer nor an error, has failed.
type Client interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
}

var _ Client = (*sqs.Client)(nil)

// HTTPClient returns a client for sqs.Options.HTTPClient (or aws.Config.HTTPClient) with the connections and timeouts that a
// worker with inFlight messages in flight needs.
//
// The SDK's default client keeps ten idle connections per host, so a busy worker opens a new one, with its TLS handshake, for
// most calls. It also lacks a response timeout, so a long poll on a dead connection waits until the kernel notices.
//
// The buffers need 96 KB for each open connection. One read or write is then enough for a receive of ten messages with bodies
// of 5 KB, a delete of ten, or a batch of 25 records of package dynamostore. Give the client to the DynamoDB client as well.
//
// A worker has at most Options.MaxReceivers receives under way, as many deletes (at least 16), a heartbeat call for each ten due
// messages, and a send for each rejected message. More calls are under way only during a stop, and while SQS answers slowly.
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
	// callTimeout is how long a delete, a release or an extension may run before it is repeated. Deletes and extensions continue
	// to wait for the answer meanwhile, at most maxPatience.
	callTimeout = 5 * time.Second
	maxPatience = time.Minute
	// receiveMargin is the time that a receive may need beyond its wait. A shorter timeout would cancel polls that SQS has
	// already answered, and their messages would stay hidden for a visibility timeout.
	receiveMargin = 20 * time.Second
	// sendTimeout limits a send to the dead-letter queue, including the SDK's own retries.
	sendTimeout = 10 * time.Second
)

// singleAttempt switches off the SDK's retries. The worker retries itself: it knows how long a lease still lasts, and
// after a lost reply the SDK would repeat a long poll inside a deadline that fits only one.
func singleAttempt(o *sqs.Options) {
	o.Retryer = aws.NopRetryer{}
	withEvidence(o)
}

// withEvidence makes the error of a call say whether SQS has answered: see errorCode. The call is Whole.
func withEvidence(o *sqs.Options) {
	o.APIOptions = append(o.APIOptions, sdkhttp.Evidence)
	o.HTTPClient = sdkhttp.Whole(o.HTTPClient)
}
