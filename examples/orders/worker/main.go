// Command worker runs the orders handler on a queue until SIGTERM or SIGINT, then finishes what it has begun and exits
// with status 0. A second signal cancels the handlers.
//
// It is configured by the environment: QUEUE_URL, DEDUP_TABLE, LEDGER_TABLE, CONSUMER (orders), CONCURRENCY (10), CALLS
// (a file; none), VISIBILITY and LEASE (durations; the libraries' defaults), and what the AWS SDK reads, such as
// AWS_REGION and AWS_ENDPOINT_URL.
package main

import (
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/host"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	err := host.Run(log, func(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
		return orders.NewHandler(dynamodb.NewFromConfig(cfg), c)
	})
	if err != nil {
		log.Error("worker ended", "error", err)
		os.Exit(1)
	}
}
