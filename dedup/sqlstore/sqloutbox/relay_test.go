package sqloutbox

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// queue is a FIFO queue in memory.
type queue struct {
	client *sqs.Client
	url    string
}

func newQueue(t testing.TB) *queue {
	t.Helper()
	srv := memsqs.New()
	t.Cleanup(srv.Close)
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: srv},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("orders.fifo"), Attributes: map[string]string{"FifoQueue": "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &queue{client, aws.ToString(out.QueueUrl)}
}

// relay returns a relay of its own publisher.
func (q *queue) relay(t testing.TB, s outbox.Store) *outbox.Relay {
	t.Helper()
	p, err := fifo.NewPublisher(q.client, q.url, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("closing the publisher: %v", err)
		}
	})
	r, err := outbox.NewRelay(s, p, func(o *outbox.Options) {
		o.Poll, o.Settle, o.Logger = 50*time.Millisecond, -1, slog.New(slog.DiscardHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// receive takes all messages from the queue.
func (q *queue) receive(t testing.TB) (all []sqstypes.Message) {
	t.Helper()
	for {
		out, err := q.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &q.url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return all
		}
		for _, m := range out.Messages {
			if _, err := q.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, out.Messages...)
	}
}
