package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

const (
	functionTimeout = 12 * time.Second // longer than a manual review
	// queueVisibility is what the mapping receives with: it cannot be told another.
	queueVisibility = 15 * time.Second
	batchSize       = 10
	concurrentCalls = 2 // of each function: the least a mapping can be limited to
)

// functions are the Lambda side of the crew: the compiled bootstrap behind an event source mapping, one for each queue.
type functions struct {
	byQueue map[string]*runtimeapi.Function
	cancel  context.CancelFunc
	group   errgroup.Group
	log     *os.File
}

// startFunctions is undone by stop or kill.
func (c *crew) startFunctions(ctx context.Context, in *input) error {
	log, err := os.Create(filepath.Join(c.dir, "functions.log"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &functions{byQueue: map[string]*runtimeapi.Function{}, cancel: cancel, log: log}
	c.functions = f
	client := sqs.New(sqs.Options{
		Region: c.stack.SQS.Options().Region, Credentials: c.stack.SQS.Options().Credentials,
		BaseEndpoint: aws.String(c.stack.counter.url),
	})
	for _, h := range in.halves {
		function, err := runtimeapi.Start(ctx, filepath.Join(c.bin, c.stack.backend.function), func(o *runtimeapi.Options) {
			o.Env = append(c.environment(h.queue), "DEAD_LETTER_QUEUE="+c.stack.QueueURL[h.dlq])
			o.Timeout = functionTimeout
			o.Processes = concurrentCalls
			o.Stdout, o.Stderr = log, log
		})
		if err != nil {
			return err
		}
		f.byQueue[h.queue] = function
		f.group.Go(func() error {
			return esm.Run(ctx, client, esm.Config{
				QueueURL:                c.stack.QueueURL[h.queue],
				BatchSize:               batchSize,
				MaximumConcurrency:      concurrentCalls,
				FunctionTimeout:         functionTimeout,
				InvokerTimesOut:         true,
				ReportBatchItemFailures: true,
				Wait:                    2 * time.Second,
				Logger:                  slog.New(slog.NewTextHandler(log, nil)),
			}, function.Invoke)
		})
	}
	return nil
}

// killOne kills a process of the queue's function as a crash would: in the middle of an invocation, if there is one.
func (f *functions) killOne(queue string) (pid int, err error) {
	pid, err = f.byQueue[queue].KillOne()
	if err != nil {
		err = fmt.Errorf("function of %s: %w", queue, err)
	}
	return pid, err
}

// stop lets the mappings finish what they have received.
func (f *functions) stop(ctx context.Context) error {
	f.cancel()
	errs := []error{f.group.Wait()}
	for _, function := range f.byQueue {
		errs = append(errs, function.Close(ctx))
	}
	return errors.Join(append(errs, f.log.Close())...)
}

// environment is what both hosts of the handler are configured by.
func (c *crew) environment(queue string) []string {
	return append([]string{
		"QUEUE_URL=" + c.stack.QueueURL[queue],
		"DEDUP_TABLE=" + c.stack.names.dedup, "LEDGER_TABLE=" + c.stack.names.ledger, "CONSUMER=billing",
		"CALLS=" + c.callsFile(), "CONCURRENCY=" + strconv.Itoa(concurrency),
		"VISIBILITY=" + visibility.String(), "LEASE=" + lease.String(),
		"AWS_ENDPOINT_URL_SQS=" + c.stack.counter.url,
		"AWS_ENDPOINT_URL_DYNAMODB=" + c.stack.dynamoURL(),
		"AWS_REGION=" + cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"),
		"AWS_ACCESS_KEY_ID=" + cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"),
		"AWS_SECRET_ACCESS_KEY=" + cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"),
		"AWS_EC2_METADATA_DISABLED=true",
	}, c.stack.backend.env...)
}
