package control_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// A worker that obeys the command sqsonce pause --consumer billing.
func Example() {
	var cfg aws.Config // from config.LoadDefaultConfig
	type order struct{ ID string }
	charge := func(ctx context.Context, o order) error { return nil }

	client, queueURL := sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL")
	store, err := dynamostore.New(dynamodb.NewFromConfig(cfg), "records")
	if err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	c, err := control.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	handler := c.Handler(once.Handler(sqsonce.JSON(charge))) // outside of deduplication
	w, err := sqsworker.New(client, queueURL, handler, func(o *sqsworker.Options) { o.Hooks = append(o.Hooks, c.Hooks()) })
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// A program pauses a consumer, as the command sqsonce pause does.
func ExampleSet() {
	ctx, store := context.Background(), memstore.New()

	seen, err := control.Read(ctx, store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	s, err := control.Set(ctx, store, seen, control.State{Paused: true, By: "ann", Reason: "bank is down"}, 2*time.Hour)
	if err != nil {
		log.Fatal(err) // dedup.ErrChanged: another operator was first
	}
	fmt.Println(s.Paused, s.Reason)
	// Output: true bank is down
}
