// Command quickstart is README's first program: a worker that charges each order once.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

type Order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func chargeCard(ctx context.Context, o Order) error {
	m, _ := sqsonce.FromContext(ctx)
	key, _, err := m.Key() // of event-source and event-id, else of the message's own ID
	if err != nil {
		return err
	}
	log.Print("charge ", o.Cents, " cents, idempotency key ", key) // call your payment API here
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := must(config.LoadDefaultConfig(ctx))
	store := must(dynamostore.New(dynamodb.NewFromConfig(cfg), "dedup")) // the table of the records
	check(store.Check(ctx))
	once := must(dedup.New(store, "billing")) // the consumer's name, a part of every key
	handler := once.Handler(sqsonce.JSON(chargeCard))
	worker := must(sqsworker.New(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), handler))
	check(worker.Run(ctx)) // until SIGTERM; nil after a clean stop
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
