// Command lambda runs the orders handler as a Lambda function behind an SQS event source mapping: the same handler as the
// worker's.
//
// It is configured by the environment: DEDUP_TABLE, LEDGER_TABLE, CONSUMER (orders), CALLS (a file; none),
// DEAD_LETTER_QUEUE (URL; none) and what the AWS SDK reads.
package main

import (
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/function"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	err := function.Run(log, func(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
		return orders.NewHandler(dynamodb.NewFromConfig(cfg), c)
	})
	log.Error("function ended", "error", err)
	os.Exit(1)
}
