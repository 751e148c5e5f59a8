package s3payload_test

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/s3payload"
)

var (
	cfg     aws.Config // of config.LoadDefaultConfig
	handler = func(context.Context, *sqsonce.Message) error { return nil }
)

// The handler gets the object's content. once is dedup's.
func ExampleResolve() {
	newHandler := func(once *dedup.Once) (sqsonce.Handler, error) {
		return s3payload.Resolve(once.Handler(handler), s3.NewFromConfig(cfg), []string{"orders-payloads"})
	}
	_ = newHandler
}

// Bodies above the queue's limit go to S3. The methods are those of fifo.Publisher.
func ExampleNewPublisher() {
	publish := func(ctx context.Context, p *fifo.Publisher, body string) error {
		large, err := s3payload.NewPublisher(p, s3.NewFromConfig(cfg), "orders-payloads")
		if err != nil {
			return err
		}
		_, err = large.Publish(ctx, fifo.Event{ID: "ord-42/v3", Group: "ord-42", Body: body})
		return err
	}
	_ = publish
}
