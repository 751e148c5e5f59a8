package memsqs_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// The first message received is delivered twice.
func Example() {
	srv := memsqs.New(func(o *memsqs.Options) {
		o.Faults = fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate}}}
	})
	defer srv.Close()
	client := sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://sqs.local"),
		HTTPClient:   &http.Client{Transport: srv},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})

	ctx := context.Background()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("order 42")}); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(*out.Messages[0].Body)
	}
	fmt.Println("in flight:", len(srv.Messages("orders")))
	// Output:
	// order 42
	// order 42
	// in flight: 2
}
