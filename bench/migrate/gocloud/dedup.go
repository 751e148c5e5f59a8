package gocloud

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"gocloud.dev/pubsub/awssnssqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// ConsumeOnce is the same subscriber with a handler.
func ConsumeOnce(ctx context.Context, client *sqs.Client, queueURL, queueARN string, handler sqsonce.Handler) error {
	sub := awssnssqs.OpenSubscription(ctx, client, queueURL, &awssnssqs.SubscriptionOptions{WaitTime: 20 * time.Second, NackLazy: true})
	for {
		m, err := sub.Receive(ctx)
		if err != nil {
			return errors.Join(err, sub.Shutdown(context.WithoutCancel(ctx)))
		}
		var received sqstypes.Message
		m.As(&received) // as SQS sent it: not unescaped, in its envelope
		err = handler(ctx, sqsworker.MessageOf(received, queueARN))
		if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeDone {
			log.Print(err)
			m.Nack() // lazy: delivered again when its visibility timeout ends
			continue
		}
		m.Ack()
	}
}
