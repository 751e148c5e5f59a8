// Command worker runs the orders handler on a queue until SIGTERM or SIGINT, finishes the messages that it has received, and
// exits with status 0. A second signal cancels the handlers.
//
// Environment variables, with their defaults:
//
//	QUEUE_URL     URL of the queue
//	DEDUP_TABLE   DynamoDB table of the records
//	LEDGER_TABLE  DynamoDB table of the ledger
//	CONSUMER      orders
//	CALLS         file that stands for an external system; none
//	CONCURRENCY   10
//	VISIBILITY    visibility timeout, as a Go duration; that of package sqsworker
//	LEASE         record lease, as a Go duration; that of package dedup
//	BACKOFF       longest delay after a try that failed, as a Go duration: 1 s, doubled with each try; package sqsworker's own
//
// and those of the AWS SDK, such as AWS_REGION and AWS_ENDPOINT_URL.
package main

import (
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/workerhost"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	err := workerhost.Run(log, func(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
		return orders.NewHandler(dynamodb.NewFromConfig(cfg), c)
	})
	if err != nil {
		log.Error("worker has failed", "error", err)
		os.Exit(1)
	}
}
