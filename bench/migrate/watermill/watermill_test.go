package watermill

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	wmsqs "github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/migratetest"
)

type stack = migratetest.Stack

// config is that of the stack's client.
func config(s stack) aws.Config {
	o := s.SQS.Options()
	return aws.Config{Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient, BaseEndpoint: o.BaseEndpoint}
}

func by(send func(*wmsqs.Publisher, string, Order) error) migratetest.Producer {
	return func(_ context.Context, s stack, id string) error {
		p, err := wmsqs.NewPublisher(wmsqs.PublisherConfig{AWSConfig: config(s)}, watermill.NopLogger{})
		if err != nil {
			return err
		}
		return send(p, migratetest.Queue, Order{ID: id})
	}
}

func TestSteps(t *testing.T) {
	migratetest.Recipe{
		Send: by(Send), SendWithID: by(SendWithID),
		Before: func(ctx context.Context, s stack, charge func(context.Context, Order) error) error {
			return Consume(ctx, config(s), migratetest.Queue, charge)
		},
		Dedup: func(ctx context.Context, s stack, h sqsonce.Handler) error {
			return ConsumeOnce(ctx, config(s), migratetest.Queue, s.ARN, h)
		},
		Host: migratetest.Work,
	}.Run(t)
}
