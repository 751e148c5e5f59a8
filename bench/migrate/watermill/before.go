// Package watermill moves a consumer on watermill-aws to sqsonce: docs/migrate.md shows its steps.
package watermill

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ThreeDotsLabs/watermill"
	wmsqs "github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/sqsonce/sqsonce/bench/migrate"
)

// Order is the body of a message.
type Order = migrate.Order

// Send is the producer.
func Send(p *wmsqs.Publisher, queue string, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return p.Publish(queue, message.NewMessage(watermill.NewUUID(), body))
}

// Consume is the router.
func Consume(ctx context.Context, cfg aws.Config, queue string, charge func(context.Context, Order) error) error {
	logger := watermill.NewSlogLogger(nil)
	sub, err := wmsqs.NewSubscriber(wmsqs.SubscriberConfig{AWSConfig: cfg}, logger)
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return err
	}
	router.AddConsumerHandler("charge", queue, sub, func(m *message.Message) error {
		var o Order
		if err := json.Unmarshal(m.Payload, &o); err != nil {
			return err
		}
		return charge(m.Context(), o)
	})
	return errors.Join(router.Run(ctx), sub.Close())
}
