package gocloud

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/migratetest"
)

type stack = migratetest.Stack

func onTopic(send func(context.Context, *pubsub.Topic, Order) error) migratetest.Producer {
	return func(ctx context.Context, s stack, id string) error {
		topic := awssnssqs.OpenSQSTopic(ctx, s.SQS, s.URL, nil)
		return errors.Join(send(ctx, topic, Order{ID: id}), topic.Shutdown(ctx))
	}
}

func consumeOnce(ctx context.Context, s stack, h sqsonce.Handler) error {
	return ConsumeOnce(ctx, s.SQS, s.URL, s.ARN, h)
}

// refused is told for almost a visibility timeout that another consumer has the events.
func refused(ctx context.Context, s stack, charge func(context.Context, Order) error) error {
	busy, stop := context.WithTimeout(ctx, 25*time.Second)
	defer stop()
	n := 0
	err := ConsumeOnce(busy, s.SQS, s.URL, s.ARN, func(context.Context, *sqsonce.Message) error { n++; return sqsonce.ErrInProgress })
	switch {
	case busy.Err() == nil:
		return err
	case n != 3:
		return fmt.Errorf("%d deliveries within a visibility timeout, want one of each message", n)
	}
	return migratetest.Handled(consumeOnce)(ctx, s, charge)
}

func TestSteps(t *testing.T) {
	migratetest.Recipe{
		Send: onTopic(Send), SendWithID: onTopic(SendWithID),
		Before: func(ctx context.Context, s stack, charge func(context.Context, Order) error) error {
			return Consume(ctx, s.SQS, s.URL, charge)
		},
		Dedup: consumeOnce, Host: migratetest.Work,
		More: map[string]migratetest.Step{
			"dedup: what is in progress elsewhere waits": {Send: []migratetest.Producer{migratetest.Publish}, Consume: []migratetest.Consumer{refused}, Want: 1},
		},
	}.Run(t)
}
