package choose

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// A FIFO queue drops a second send for five minutes, counted from the first one. A producer that tries again later, from its
// outbox or because a person pressed the button again, gets a second message, and the card is charged twice.
func Example_fifoAlone() {
	ctx := context.Background()
	clock := newClock()
	srv := memsqs.New(func(o *memsqs.Options) { o.Now = clock.now })
	defer srv.Close()
	client := newSQS(srv)
	queue := createQueue(client, "orders.fifo", map[string]string{"FifoQueue": "true"})
	send := func() {
		if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: queue, MessageBody: aws.String("order 42"), MessageGroupId: aws.String("42"), MessageDeduplicationId: aws.String("order-42"),
		}); err != nil {
			log.Fatal(err)
		}
	}
	charged := 0
	work := func() { // a worker without a record of the event
		for {
			out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue})
			if err != nil {
				log.Fatal(err)
			}
			if len(out.Messages) == 0 {
				return
			}
			charged++
			if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
				log.Fatal(err)
			}
		}
	}

	send()
	work()
	clock.pass(4*time.Minute + 59*time.Second)
	send()
	work()
	fmt.Println("sent again within five minutes: charged", charged)
	clock.pass(2 * time.Second)
	send()
	work()
	fmt.Println("sent again after five minutes: charged", charged)
	// Output:
	// sent again within five minutes: charged 1
	// sent again after five minutes: charged 2
}

// The deduplication of a FIFO queue is about sends. A message whose handler outlives the visibility timeout is delivered
// again, and the first delivery can no longer delete it.
func Example_fifoSlowHandler() {
	ctx := context.Background()
	clock := newClock()
	srv := memsqs.New(func(o *memsqs.Options) { o.Now = clock.now })
	defer srv.Close()
	client := newSQS(srv)
	queue := createQueue(client, "orders.fifo", map[string]string{"FifoQueue": "true", "VisibilityTimeout": "30"})
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: queue, MessageBody: aws.String("order 42"), MessageGroupId: aws.String("42"), MessageDeduplicationId: aws.String("order-42"),
	}); err != nil {
		log.Fatal(err)
	}
	receive := func() (handle *string) {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue})
		if err != nil || len(out.Messages) == 0 {
			log.Fatal("nothing received: ", err)
		}
		fmt.Println("handler starts")
		return out.Messages[0].ReceiptHandle
	}

	first := receive()
	clock.pass(31 * time.Second) // and the handler still runs
	receive()
	_, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: first})
	fmt.Println("the first delivery deletes:", err == nil)
	// Output:
	// handler starts
	// handler starts
	// the first delivery deletes: false
}
