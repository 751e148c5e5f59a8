// Command worker runs the orders handler on a queue until SIGTERM or SIGINT, finishes the messages that it has received, and
// exits with status 0. A second signal cancels the handlers. The commands sqsonce pause and set-concurrency pause and limit it.
//
// Environment variables, with their defaults:
//
//	QUEUE_URL     URL of the queue
//	DEDUP_TABLE   DynamoDB table of the records
//	LEDGER_TABLE  DynamoDB table of the ledger
//	CONSUMER      orders
//	CALLS         file that stands for an external system; none
//	UNKNOWN_SKUS  file of the articles that the external system does not know, one on each line; it knows all
//	CONCURRENCY   10
//	VISIBILITY    visibility timeout, as a Go duration; that of package sqsworker
//	LEASE         record lease, as a Go duration; that of package dedup
//	STOP_TIMEOUT  how long handlers may go on after a signal, as a Go duration; that of package sqsworker
//	HEALTH_ADDR   address that serves /live, /ready, /stats, /running and a page, such as :8080; none. There is no authentication
//	PROTECT       true: a task of ECS is protected while a handler runs for long; false
//	BACKOFF       longest delay after a try that failed, as a Go duration: 1 s, doubled with each try; package sqsworker's own
//
// and those of the AWS SDK, such as AWS_REGION and AWS_ENDPOINT_URL.
//
// With -health URL it runs no handler: it exits with status 0 if the URL answers 200 within three seconds, else with 1. That
// is the health check of a container without a shell: -health http://127.0.0.1:8080/live with HEALTH_ADDR=127.0.0.1:8080.
package main

import (
	"flag"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/workerhost"
)

func main() {
	health := flag.String("health", "", "exit with status 0 if this `URL` answers 200, else with 1")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if *health != "" {
		if err := workerhost.AskHealth(*health); err != nil {
			log.Error("not healthy", "error", err)
			os.Exit(1)
		}
		return
	}
	err := workerhost.Run(log, func(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
		return orders.NewHandler(dynamodb.NewFromConfig(cfg), c)
	})
	if err != nil {
		log.Error("worker has failed", "error", err)
		os.Exit(1)
	}
}
