// Command lambda runs the orders handler as a Lambda function behind an SQS event source mapping: the same handler as the
// worker's.
//
// It is configured by the environment: DEDUP_TABLE, LEDGER_TABLE, CONSUMER (orders), CALLS (a file; none),
// DEAD_LETTER_QUEUE (URL; none) and what the AWS SDK reads.
package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/lambda"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err == nil {
		err = start(cfg, log)
	}
	log.Error("function ended", "error", err)
	os.Exit(1)
}

// start returns only where the handler cannot be made.
func start(cfg aws.Config, log *slog.Logger) error {
	handler, err := orders.NewHandler(dynamodb.NewFromConfig(cfg), orders.Config{
		DedupTable:  os.Getenv("DEDUP_TABLE"),
		LedgerTable: os.Getenv("LEDGER_TABLE"),
		Consumer:    cmp.Or(os.Getenv("CONSUMER"), "orders"),
		Calls:       os.Getenv("CALLS"),
	})
	if err != nil {
		return err
	}
	lambda.Start(handler, func(o *lambda.Options) {
		o.Logger = log
		if dlq := os.Getenv("DEAD_LETTER_QUEUE"); dlq != "" {
			o.Client = sqs.NewFromConfig(cfg)
			o.DeadLetterQueue = dlq
		}
	})
	return nil
}
