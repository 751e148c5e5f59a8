// Command bare runs the orders handler in a hand-written loop on aws-lambda-go. The size of the bootstrap is compared with
// its size: it has the handler, the store and the clients of the command lambda, and not the package lambda.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Error("the AWS configuration cannot be loaded", "error", err)
		os.Exit(1)
	}
	handler, err := orders.NewHandler(dynamodb.NewFromConfig(cfg), orders.Config{
		DedupTable: os.Getenv("DEDUP_TABLE"), LedgerTable: os.Getenv("LEDGER_TABLE"), Consumer: os.Getenv("CONSUMER"), Calls: os.Getenv("CALLS"),
	})
	if err != nil {
		log.Error("the handler cannot be made", "error", err)
		os.Exit(1)
	}
	lambda.Start(func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		failures := []events.SQSBatchItemFailure{}
		for _, r := range e.Records {
			m := &sqsonce.Message{ID: r.MessageId, Body: r.Body, QueueARN: r.EventSourceARN, Attributes: map[string]sqsonce.Attribute{}}
			for name, a := range r.MessageAttributes {
				if a.StringValue != nil {
					m.Attributes[name] = sqsonce.Attribute{Type: a.DataType, String: *a.StringValue}
				}
			}
			if err := handler(ctx, m); err != nil {
				log.Error("failed", "message", r.MessageId, "error", err)
				failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
			}
		}
		return events.SQSEventResponse{BatchItemFailures: failures}, nil
	})
}
