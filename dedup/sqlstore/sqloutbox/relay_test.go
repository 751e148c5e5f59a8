package sqloutbox

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
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
	client := testaws.SQS(srv)
	return &queue{client, testaws.Queue(t, client, "orders.fifo", nil)}
}

// relay returns a relay of its own publisher.
func (q *queue) relay(t testing.TB, s outbox.Store) *outbox.Relay {
	t.Helper()
	p := must.Get(fifo.NewPublisher(q.client, q.url, source))(t)
	t.Cleanup(func() { must.Do(t, p.Close(context.WithoutCancel(t.Context()))) })
	r := must.Get(outbox.NewRelay(s, p, func(o *outbox.Options) {
		o.Poll, o.Settle, o.Logger = 50*time.Millisecond, -1, slog.New(slog.DiscardHandler)
	}))(t)
	return r
}

// receive takes all messages from the queue.
func (q *queue) receive(t testing.TB) (all []sqstypes.Message) {
	t.Helper()
	for {
		out := must.Get(q.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &q.url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
		}))(t)
		if len(out.Messages) == 0 {
			return all
		}
		for _, m := range out.Messages {
			must.Get(q.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: m.ReceiptHandle}))(t)
		}
		all = append(all, out.Messages...)
	}
}
