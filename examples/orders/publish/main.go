// Command publish sends a file of orders to a queue: each event once, and some of them a second time. With STORE=dynamodb each order
// and its event are committed in one transaction, and a relay publishes the event.
//
//	publish        sends the file
//	publish relay  publishes what is committed, until SIGTERM
//
// Environment variables, with their defaults:
//
//	QUEUE_URL     URL of the queue
//	FILE          file of orders, one JSON object on each line
//	NAMESPACE     event source; orders
//	RETRY         percent of the events that are sent a second time, unchanged, as after a lost reply; 0
//	RESEND        percent of the events that are sent a second time with the same event-id, but with another message ID and, on
//	              a FIFO queue, another MessageDeduplicationId, as by a producer that does not know of the first send; 0. With an
//	              outbox that waits until a relay has published the event
//	STORE         dynamodb: through an outbox; else at once
//	ORDERS_TABLE  DynamoDB table of the orders, key id (S)
//	OUTBOX_TABLE  DynamoDB table of the outbox
//	OUTBOX        name of the outbox in it; orders
//	POLL          how often a relay looks for events; 1s
//	RELAY_LEASE   how long a relay's claim of a group lasts; 30s
//
// and those of the AWS SDK.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sqsonce/sqsonce/examples/orders/publishing"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("publish has failed", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "relay":
		return publishing.RunRelay(log, func(_ context.Context, cfg aws.Config) (outbox.Store, error) { return openOutbox(cfg) })
	case len(os.Args) > 1:
		return fmt.Errorf("unknown argument %q: use relay or none", os.Args[1])
	case os.Getenv("STORE") == "dynamodb":
		return publishing.Run(openOrders)
	}
	return publishing.Run(nil)
}
