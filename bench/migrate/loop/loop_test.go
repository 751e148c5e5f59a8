package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/migratetest"
	"github.com/sqsonce/sqsonce/fifo"
)

type stack = migratetest.Stack

func send(ctx context.Context, s stack, id string) error {
	return Send(ctx, s.SQS, s.URL, Order{ID: id})
}

func sendWithID(ctx context.Context, s stack, id string) error {
	return SendWithID(ctx, s.SQS, s.URL, Order{ID: id})
}

func publish(ctx context.Context, s stack, id string) error {
	p, err := fifo.NewPublisher(s.SQS, s.URL, "orders")
	if err != nil {
		return err
	}
	return Publish(ctx, p, Order{ID: id})
}

func consumeOnce(ctx context.Context, s stack, h sqsonce.Handler) error {
	return ConsumeOnce(ctx, s.SQS, s.URL, s.ARN, h)
}

// killed charges as the loop of before does, and dies before its deletes. A loop with dedup follows: it finds no records.
func killed(ctx context.Context, s stack, charge func(context.Context, Order) error) error {
	old, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	err := Consume(old, s.SQS, s.URL, func(ctx context.Context, o Order) error { return errors.Join(charge(ctx, o), errKilled) })
	if old.Err() == nil {
		return err
	}
	return migratetest.Handled(consumeOnce)(ctx, s, charge)
}

var errKilled = errors.New("killed before the delete")

func TestSteps(t *testing.T) {
	migratetest.Recipe{
		Send: send, SendWithID: sendWithID,
		Before: func(ctx context.Context, s stack, charge func(context.Context, Order) error) error {
			return Consume(ctx, s.SQS, s.URL, charge)
		},
		Dedup: consumeOnce,
		Host:  func(ctx context.Context, s stack, h sqsonce.Handler) error { return Work(ctx, s.SQS, s.URL, h) },
		More: map[string]migratetest.Step{
			"dedup: after a loop without it": {Send: []migratetest.Producer{sendWithID}, Consume: []migratetest.Consumer{killed}, Want: 2},
			"IDs: the publisher":             {Send: []migratetest.Producer{sendWithID, publish}, Consume: []migratetest.Consumer{migratetest.Handled(consumeOnce)}, Want: 1},
		},
	}.Run(t)
}
