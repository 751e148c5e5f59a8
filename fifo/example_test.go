package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// exampleQueue returns a client of an SQS in memory, with faults, and the URL of its queue.
func exampleQueue(name string, faults ...fault.Rule) (*sqs.Client, string) {
	client := testaws.SQS(memsqs.New(func(o *memsqs.Options) { o.Faults.Rules = faults }))
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

// A relay publishes the rows of an outbox and marks those that are in the queue. What is left is published again, in its order and
// with the same IDs, until it succeeds: also what may be in the queue already.
func ExamplePublishError() {
	client, queueURL := exampleQueue("orders.fifo", fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Error, Code: "AccessDenied"})
	p, err := fifo.NewPublisher(client, queueURL, "orders", func(o *fifo.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	if err != nil {
		fmt.Println(err)
		return
	}
	rows := []fifo.Event{{ID: "ord-42/v1", Group: "ord-42", Body: "{}"}, {ID: "ord-42/v2", Group: "ord-42", Body: "{}"}}
	for len(rows) > 0 {
		receipts, err := p.PublishAll(context.Background(), rows)
		var left []fifo.Event
		for i, receipt := range receipts {
			if receipt.MessageID == "" { // failed: the error has its reason
				left = append(left, rows[i])
				continue
			}
			fmt.Println("in the queue:", rows[i].ID)
		}
		if err != nil {
			fmt.Println("not in the queue:", errors.Is(err, fifo.ErrNotSent), "maybe:", errors.Is(err, fifo.ErrUnknownOutcome))
		}
		rows = left // wait here, longer each time
	}
	// Output:
	// not in the queue: true maybe: false
	// in the queue: ord-42/v1
	// in the queue: ord-42/v2
}

// Check finds before the transaction commits what no queue accepts.
func ExampleEvent_Check() {
	e := fifo.Event{ID: "ord-42/v3", Group: "order 42", Body: "{}"}
	if err := e.Check("orders"); err != nil {
		fmt.Println("roll back:", err)
	}
	// Output: roll back: fifo: event "ord-42/v3" of group "order 42": fifo: Event.Group: has byte 0x20 at 5, must be printable ASCII without the space
}

// A service accepts events without waiting, and learns at its end which are not in the queue.
func ExamplePublisher_Close() {
	client, queueURL := exampleQueue("orders.fifo")
	p, err := fifo.NewPublisher(client, queueURL, "orders", func(o *fifo.Options) {
		o.OnFailure = func(e fifo.Event, err *fifo.PublishError) { fmt.Println("store it for later:", e.ID, err) }
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := range 100 {
		e := fifo.Event{ID: fmt.Sprintf("ord-%d/v1", n), Group: fmt.Sprintf("ord-%d", n), Body: "{}"}
		if _, err := p.Enqueue(context.Background(), e); err != nil { // waits where 10,000 are accepted and have no result
			fmt.Println(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println("closed:", p.Close(ctx)) // sends the remaining events, and names the unsent ones
	// Output: closed: <nil>
}

// NewPublisher reports all bad arguments at once, and makes no call.
func ExampleNewPublisher() {
	client, _ := exampleQueue("orders.fifo")
	_, err := fifo.NewPublisher(client, "", "or ders")
	fmt.Println(err)
	_, ok := errors.AsType[*sqsonce.OptionError](err)
	fmt.Println(ok)
	// Output:
	// fifo: queueURL: is empty
	// fifo: namespace: is "or ders", must be 1 to 48 of A-Z a-z 0-9 . _ : / -
	// true
}
