package localstack_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Without an endpoint in the environment both services run in memory.
func ExampleStart() {
	ctx := context.Background()
	stack, err := localstack.Start(ctx, func(o *localstack.Options) {
		o.Queues = []localstack.Queue{{Name: "orders", MaxReceiveCount: 3}}
		o.Tables = []string{"dedup"}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := stack.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}()

	queue := aws.String(stack.QueueURL["orders"])
	if _, err := stack.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("order 42")}); err != nil {
		fmt.Println(err)
		return
	}
	out, err := stack.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue, WaitTimeSeconds: 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("received:", *out.Messages[0].Body)
	if _, err := stack.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("deleted")
	// Output:
	// received: order 42
	// deleted
}

// A test that injects faults, or reads the state of a queue, sets InMemory: then it runs the same way where AWS_ENDPOINT_URL is
// set.
func ExampleStart_inMemory() {
	ctx := context.Background()
	stack, err := localstack.Start(ctx, func(o *localstack.Options) {
		o.InMemory = true
		o.Queues = []localstack.Queue{{Name: "orders"}}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := stack.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}()

	queue := aws.String(stack.QueueURL["orders"])
	if _, err := stack.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("order 42")}); err != nil {
		fmt.Println(err)
		return
	}
	// SQS delivers the message twice, as it may do on a standard queue.
	stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate}}})
	for range 2 {
		out, err := stack.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, m := range out.Messages {
			fmt.Println("received:", *m.Body)
			if _, err := stack.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	fmt.Println("in the queue:", len(stack.MemSQS().Messages("orders")))
	// Output:
	// received: order 42
	// received: order 42
	// in the queue: 0
}
