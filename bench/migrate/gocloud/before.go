// Package gocloud moves a consumer on gocloud.dev/pubsub to sqsonce: docs/migrate.md shows its steps.
package gocloud

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/sqsonce/sqsonce/bench/migrate"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
)

// Order is the body of a message.
type Order = migrate.Order

// Send is the producer.
func Send(ctx context.Context, topic *pubsub.Topic, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return topic.Send(ctx, &pubsub.Message{Body: body})
}

// Consume is the subscriber.
func Consume(ctx context.Context, client *sqs.Client, queueURL string, charge func(context.Context, Order) error) error {
	sub := awssnssqs.OpenSubscription(ctx, client, queueURL, &awssnssqs.SubscriptionOptions{WaitTime: 20 * time.Second})
	for {
		m, err := sub.Receive(ctx)
		if err != nil {
			return errors.Join(err, sub.Shutdown(context.WithoutCancel(ctx)))
		}
		var o Order
		if err = json.Unmarshal(m.Body, &o); err == nil {
			err = charge(ctx, o)
		}
		if err != nil {
			log.Print(err)
			m.Nack()
			continue
		}
		m.Ack()
	}
}
