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
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/migratetest"
	"github.com/sqsonce/sqsonce/sqsworker"
)

type (
	stack    = migratetest.Stack
	producer = func(context.Context, stack, string) error
	consumer = func(context.Context, stack, func(string) error) error
)

func onTopic(send func(context.Context, *pubsub.Topic, Order) error) producer {
	return func(ctx context.Context, s stack, id string) error {
		topic := awssnssqs.OpenSQSTopic(ctx, s.SQS, s.URL, nil)
		return errors.Join(send(ctx, topic, Order{ID: id}), topic.Shutdown(ctx))
	}
}

var send, sendWithID = onTopic(Send), onTopic(SendWithID)

func publish(ctx context.Context, s stack, id string) error {
	p, err := fifo.NewPublisher(s.SQS, s.URL, "orders")
	if err != nil {
		return err
	}
	_, err = p.Publish(ctx, fifo.Event{ID: id, Body: `{"id":"` + id + `"}`})
	return err
}

func charge(effect func(string) error) func(context.Context, Order) error {
	return func(_ context.Context, o Order) error { return effect(o.ID) }
}

func consume(ctx context.Context, s stack, effect func(string) error) error {
	return Consume(ctx, s.SQS, s.URL, charge(effect))
}

func handled(run func(context.Context, stack, sqsonce.Handler) error) consumer {
	return func(ctx context.Context, s stack, effect func(string) error) error {
		store, err := dynamostore.New(s.DynamoDB, migratetest.Table)
		if err != nil {
			return err
		}
		once, err := dedup.New(store, "billing")
		if err != nil {
			return err
		}
		return run(ctx, s, once.Handler(sqsonce.JSON(charge(effect))))
	}
}

var consumeOnce = handled(func(ctx context.Context, s stack, h sqsonce.Handler) error {
	return ConsumeOnce(ctx, s.SQS, s.URL, s.ARN, h)
})

var work = handled(func(ctx context.Context, s stack, h sqsonce.Handler) error {
	w, err := sqsworker.New(s.SQS, s.URL, h)
	if err != nil {
		return err
	}
	return w.Run(ctx)
})

// refused is told for almost a visibility timeout that another consumer has the events.
func refused(ctx context.Context, s stack, effect func(string) error) error {
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
	return consumeOnce(ctx, s, effect)
}

func TestSteps(t *testing.T) {
	for name, step := range map[string]migratetest.Step{
		"before: every copy has an effect":         {Send: []producer{send, send}, Consume: []consumer{consume}, Want: 2},
		"dedup: a message that is delivered twice": {Send: []producer{send}, Twice: true, Consume: []consumer{consumeOnce}, Want: 1},
		"dedup: an event that is sent twice":       {Send: []producer{send, send}, Consume: []consumer{consumeOnce}, Want: 2},
		"IDs: an event that is sent twice":         {Send: []producer{sendWithID, sendWithID}, Twice: true, Consume: []consumer{consumeOnce}, Want: 1},
		"IDs: both producers":                      {Send: []producer{sendWithID, publish}, Consume: []consumer{consumeOnce}, Want: 1},
		"worker beside the subscriber":             {Send: []producer{sendWithID, publish}, Twice: true, Consume: []consumer{work, consumeOnce}, Want: 1},
		"worker beside it, without IDs":            {Send: []producer{send}, Twice: true, Consume: []consumer{work, consumeOnce}, Want: 1},
		"what is in progress elsewhere waits":      {Send: []producer{publish}, Consume: []consumer{refused}, Want: 1},
		"what is in progress is not deleted":       {Send: []producer{publish}, Fails: true, Consume: []consumer{consumeOnce, consumeOnce}, Want: 1},
	} {
		t.Run(name, func(t *testing.T) { migratetest.Run(t, step) })
	}
}
