// Command mapping runs a compiled function behind a queue, like an event source mapping of Lambda. See docs/testing.md.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

const timeout = 30 * time.Second // of the function, at most the visibility timeout of the queue

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: mapping BOOTSTRAP QUEUE_URL")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	check(err)
	f, err := runtimeapi.Start(ctx, os.Args[1], func(o *runtimeapi.Options) {
		o.Env, o.Timeout, o.Stdout, o.Stderr = os.Environ(), timeout, os.Stdout, os.Stderr
	})
	check(err)
	mapping := esm.Config{QueueURL: os.Args[2], FunctionTimeout: timeout, InvokerTimesOut: true, ReportBatchItemFailures: true}
	err = esm.Run(ctx, sqs.NewFromConfig(cfg), mapping, f.Invoke)
	check(errors.Join(err, f.Close(context.WithoutCancel(ctx))))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
