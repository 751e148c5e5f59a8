package fifo_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// exampleQueue returns a client of an SQS in memory and the URL of its queue.
func exampleQueue(name string) (*sqs.Client, string) {
	client := newClient(memsqs.New())
	out, err := client.CreateQueue(context.Background(), &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"FifoQueue": "true"},
	})
	if err != nil {
		panic(err)
	}
	return client, aws.ToString(out.QueueUrl)
}

func ExampleDedupID() {
	fmt.Println(fifo.DedupID("orders", "ord-42/v3"))
	// Output: orders|ord-42/v3 <nil>
}

func ExamplePublisher_Publish() {
	ctx := context.Background()
	client, queueURL := exampleQueue("orders.fifo")

	p, err := fifo.NewPublisher(client, queueURL, "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	// The ID names the occurrence: version 3 of the order, however often it is published.
	e := fifo.Event{ID: "ord-42/v3", Group: "ord-42", Type: "order.paid", Body: `{"amount":700}`}
	for range 2 {
		receipt, err := p.Publish(ctx, e)
		fmt.Println(receipt.DedupID, err)
	}
	if err := p.Close(ctx); err != nil {
		fmt.Println(err)
	}
	out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queueURL, MaxNumberOfMessages: 10})
	fmt.Println(len(out.Messages), "message in the queue", err)
	// Output:
	// orders|ord-42/v3 <nil>
	// orders|ord-42/v3 <nil>
	// 1 message in the queue <nil>
}

func ExamplePublisher_PublishAll() {
	client, queueURL := exampleQueue("orders.fifo")
	p, err := fifo.NewPublisher(client, queueURL, "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = p.PublishAll(context.Background(), []fifo.Event{
		{ID: "ord-42/v1", Group: "ord-42", Body: "{}"},
		{ID: "ord-42/v2", Group: "ord-42"},
		{ID: "ord-42/v3", Group: "ord-42", Body: "{}"},
		{ID: "ord-43/v1", Group: "ord-43", Body: "{}"},
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, fifo.ErrGroupHalted))
	// Output:
	// fifo: event "ord-42/v2" of group "ord-42": fifo: Event.Body: is empty
	// fifo: event "ord-42/v3" of group "ord-42": fifo: not sent because an earlier event of the group failed: event "ord-42/v2": fifo: Event.Body: is empty
	// true
}

// NewPublisher reports all bad arguments at once, and makes no call.
func ExampleNewPublisher() {
	client, _ := exampleQueue("orders.fifo")
	_, err := fifo.NewPublisher(client, "", "or ders")
	fmt.Println(err)
	_, ok := errors.AsType[*sqsonce.FieldError](err)
	fmt.Println(ok)
	// Output:
	// fifo: queueURL: is empty
	// fifo: namespace: is "or ders", must be 1 to 48 of A-Z a-z 0-9 . _ : / -
	// true
}
