// Command redisorders runs the orders handler with its records in Redis: as a Lambda function where Lambda starts it, else
// as a worker. The ledger is in DynamoDB, and no transaction spans both: the condition of the booking refuses an order that
// is booked already.
//
//	redisorders               runs the handler
//	redisorders redrive FILE  redrives the dead-letter queue DLQ_URL; what it deletes is in FILE
//
// Environment variables: REDIS_URL (redis://host:port/0), and those of the commands worker and lambda except DEDUP_TABLE.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/internal/redrive"
	"github.com/sqsonce/sqsonce/examples/orders/lambdahost"
	"github.com/sqsonce/sqsonce/examples/orders/workerhost"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("redisorders has failed", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	store, err := openStore()
	if err != nil {
		return err
	}
	newHandler := func(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) { return handler(store, cfg, c) }
	switch {
	case len(os.Args) > 1 && os.Args[1] == "redrive":
		return redrive.RunFromEnv(store)
	case len(os.Args) > 1:
		return fmt.Errorf("unknown argument %q: use redrive or none", os.Args[1])
	case os.Getenv("AWS_LAMBDA_RUNTIME_API") != "":
		return lambdahost.Run(log, newHandler)
	}
	return workerhost.Run(log, newHandler)
}

func openStore() (*redisstore.Store, error) {
	o, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true // calls end with their context
	store, err := redisstore.New(redis.NewClient(o))
	if err != nil {
		return nil, err
	}
	return store, store.Check(context.Background())
}

func handler(store *redisstore.Store, cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
	once, err := dedup.New(store, c.Consumer, c.Dedup)
	if err != nil {
		return nil, err
	}
	c.Watched(c.Consumer, once)
	ddb := dynamodb.NewFromConfig(cfg)
	return orders.NewHandlerWithStore(store, c, once.Handler(sqsonce.JSON(func(ctx context.Context, o orders.Order) error {
		return orders.BookOnce(ctx, ddb, c.LedgerTable, o)
	})))
}
