// Package function runs the orders handler as a Lambda function, configured by the environment. It is apart from package
// host because what a function links is loaded at each cold start.
package function

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/lambda"
)

// Run returns only where the handler cannot be made. See the lambda command for the environment.
func Run(log *slog.Logger, newHandler func(aws.Config, orders.Config) (sqsonce.Handler, error)) error {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		return err
	}
	handler, err := newHandler(cfg, orders.Config{
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
