// Command redisorders runs the orders handler with its records in Redis: as a Lambda function where Lambda starts it, else
// as a worker. The ledger stays in DynamoDB, where no transaction reaches the records: the booking refuses by itself what
// is booked already.
//
// REDIS_URL is redis://host:port/0; the rest of the environment is the worker's and the function's, but for DEDUP_TABLE.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/function"
	"github.com/sqsonce/sqsonce/examples/orders/host"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	run := host.Run
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		run = function.Run
	}
	if err := run(log, newHandler); err != nil {
		log.Error("redisorders ended", "error", err)
		os.Exit(1)
	}
}

func newHandler(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
	o, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	store, err := redisstore.New(redis.NewClient(o))
	if err != nil {
		return nil, err
	}
	if err := store.Check(context.Background()); err != nil {
		return nil, err
	}
	once, err := dedup.New(store, c.Consumer, func(o *dedup.Options) { o.Lease = c.Lease })
	if err != nil {
		return nil, err
	}
	ddb := dynamodb.NewFromConfig(cfg)
	return orders.Guarded(store, c, once.Handler(sqsonce.JSON(func(ctx context.Context, o orders.Order) error {
		return orders.BookOnce(ctx, ddb, c.LedgerTable, o)
	})))
}
