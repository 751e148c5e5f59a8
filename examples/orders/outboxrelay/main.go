// Command outboxrelay publishes what producers have committed into an outbox in DynamoDB: a Lambda function behind the stream of
// the outbox's table and behind a schedule.
//
// Environment variables, with their defaults:
//
//	OUTBOX_TABLE  DynamoDB table of the outbox
//	OUTBOX        name of the outbox in it; orders
//	QUEUE_URL     URL of the queue
//	NAMESPACE     event source; orders
//
// and those of the AWS SDK.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
)

func main() {
	log := lambdacontext.NewLogger()
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err == nil {
		var handler handler
		if handler, err = newHandler(dynamodb.NewFromConfig(cfg), sqs.NewFromConfig(cfg), os.Getenv, log); err == nil {
			lambda.Start(handler) // does not return
		}
	}
	log.Error("outboxrelay has failed to start", "error", err)
	os.Exit(1)
}

type handler = func(context.Context, json.RawMessage) (any, error)

func newHandler(ddb dynamooutbox.Client, queues fifo.Client, getenv func(string) string, log *slog.Logger) (handler, error) {
	namespace := cmp.Or(getenv("NAMESPACE"), "orders")
	publisher, err := fifo.NewPublisher(queues, getenv("QUEUE_URL"), namespace, func(o *fifo.Options) { o.Logger = log })
	if err != nil {
		return nil, err
	}
	box, err := dynamooutbox.New(ddb, getenv("OUTBOX_TABLE"), cmp.Or(getenv("OUTBOX"), "orders"), namespace)
	if err != nil {
		return nil, err
	}
	relay, err := outbox.NewRelay(box, publisher, func(o *outbox.Options) { o.Logger = log })
	if err != nil {
		return nil, err
	}
	return box.Lambda(relay), nil
}
