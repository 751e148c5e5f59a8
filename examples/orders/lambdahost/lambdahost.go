// Package lambdahost runs the orders handler as a Lambda function, with metrics for CloudWatch. Its configuration is read from the
// environment. It does not import package workerhost: a cold start loads everything that the function links.
package lambdahost

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/emf"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/lambda"
)

// Run serves invocations. It returns only where it cannot make the handler. The command lambda lists the environment
// variables.
func Run(log *slog.Logger, newHandler func(aws.Config, orders.Config) (sqsonce.Handler, error)) error {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		return err
	}
	metrics, err := emf.New()
	if err != nil {
		return err
	}
	handler, err := newHandler(cfg, orders.Config{
		DedupTable:  os.Getenv("DEDUP_TABLE"),
		LedgerTable: os.Getenv("LEDGER_TABLE"),
		Consumer:    cmp.Or(os.Getenv("CONSUMER"), "orders"),
		Calls:       os.Getenv("CALLS"),
		Unknown:     os.Getenv("UNKNOWN_SKUS"),
		Once:        metrics.Once,
	})
	if err != nil {
		return err
	}
	lambda.Start(handler, options(log, cfg, os.Getenv("DEAD_LETTER_QUEUE")), metrics.Lambda)
	return nil
}

// options has a client with and without a dead-letter queue: delays need it too.
func options(log *slog.Logger, cfg aws.Config, deadLetterQueue string) func(*lambda.Options) {
	return func(o *lambda.Options) {
		o.Logger, o.Client, o.DeadLetterQueue = log, sqs.NewFromConfig(cfg), deadLetterQueue
	}
}
