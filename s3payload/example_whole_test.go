package s3payload_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/s3payload"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// A report of 2 MiB goes through a queue that accepts 1 MiB.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	stack, err := localstack.Start(ctx, func(o *localstack.Options) { o.Queues = []localstack.Queue{{Name: "reports"}} })
	if err != nil {
		log.Fatal(err)
	}
	defer stack.Close(context.Background())
	queueURL, s3Client := stack.QueueURL["reports"], newS3("payloads").client()

	p, err := fifo.NewPublisher(stack.SQS, queueURL, "reports")
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := s3payload.NewPublisher(p, s3Client, "payloads")
	if err != nil {
		log.Fatal(err)
	}
	_, err = publisher.Publish(ctx, fifo.Event{ID: "report-7", Body: strings.Repeat("x", 2<<20)})
	if err != nil {
		log.Fatal(err)
	}

	once, err := dedup.New(memstore.New(), "archive")
	if err != nil {
		log.Fatal(err)
	}
	handler := once.Handler(func(_ context.Context, m *sqsonce.Message) error {
		fmt.Println("a report of", len(m.Body), "bytes")
		stop()
		return nil
	})
	handler, err = s3payload.Resolve(handler, s3Client, []string{"payloads"})
	if err != nil {
		log.Fatal(err)
	}
	w, err := sqsworker.New(stack.SQS, queueURL, handler, func(o *sqsworker.Options) { o.WaitTime = time.Second })
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: a report of 2097152 bytes
}
