package outbox_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/outboxtest/refstore"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// A producer rings after its commit. The store is one of dynamooutbox or sqloutbox; this one is in memory.
func ExampleRelay_Drain() {
	ctx := context.Background()
	srv := memsqs.New()
	defer srv.Close()
	client := testaws.SQS(srv)
	name := "orders.fifo"
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"FifoQueue": "true"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := fifo.NewPublisher(client, *queue.QueueUrl, "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	table := refstore.NewTable()
	relay, err := outbox.NewRelay(table.Open(), publisher, func(o *outbox.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	if err != nil {
		fmt.Println(err)
		return
	}
	// In one transaction: the order is paid, and the event says so.
	table.Commit(fifo.Event{ID: "ord-42/v3", Group: "ord-42", Type: "paid", Body: `{"order":42}`})
	if err := relay.Drain(ctx, "ord-42"); err != nil {
		fmt.Println(err)
	}
	for _, m := range srv.Messages(name) {
		fmt.Println(m.Group, m.Body)
	}
	// Output: ord-42 {"order":42}
}
