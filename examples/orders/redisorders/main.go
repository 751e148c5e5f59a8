// Command redisorders runs the orders handler with its records in Redis: as a Lambda function where Lambda starts it, else
// as a worker. The ledger is in DynamoDB, and no transaction spans both: the condition of the booking refuses an order that
// is booked already.
//
// Environment variables: REDIS_URL (redis://host:port/0), and those of the commands worker and lambda except DEDUP_TABLE.
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
	"github.com/sqsonce/sqsonce/examples/orders/lambdahost"
	"github.com/sqsonce/sqsonce/examples/orders/workerhost"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	run := workerhost.Run
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		run = lambdahost.Run
	}
	if err := run(log, newHandler); err != nil {
		log.Error("redisorders has failed", "error", err)
		os.Exit(1)
	}
}

func newHandler(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
	o, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true // calls end with their context
	store, err := redisstore.New(redis.NewClient(o))
	if err != nil {
		return nil, err
	}
	if err := store.Check(context.Background()); err != nil {
		return nil, err
	}
	once, err := dedup.New(store, c.Consumer, c.Dedup)
	if err != nil {
		return nil, err
	}
	ddb := dynamodb.NewFromConfig(cfg)
	return orders.NewHandlerWithStore(store, c, once.Handler(sqsonce.JSON(func(ctx context.Context, o orders.Order) error {
		return orders.BookOnce(ctx, ddb, c.LedgerTable, o)
	})))
}
