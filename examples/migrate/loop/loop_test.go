package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/migratetest"
)

type (
	stack    = migratetest.Stack
	producer = func(context.Context, stack, string) error
	consumer = func(context.Context, stack, func(string) error) error
)

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

func charge(effect func(string) error) func(context.Context, Order) error {
	return func(_ context.Context, o Order) error { return effect(o.ID) }
}

func consume(ctx context.Context, s stack, effect func(string) error) error {
	return Consume(ctx, s.SQS, s.URL, charge(effect))
}

func handled(run func(context.Context, stack, sqsonce.Handler) error) consumer {
	return func(ctx context.Context, s stack, effect func(string) error) error {
		h, err := NewHandler(s.DynamoDB, charge(effect))
		if err != nil {
			return err
		}
		return run(ctx, s, h)
	}
}

var consumeOnce = handled(func(ctx context.Context, s stack, h sqsonce.Handler) error {
	return ConsumeOnce(ctx, s.SQS, s.URL, s.ARN, h)
})

var work = handled(func(ctx context.Context, s stack, h sqsonce.Handler) error { return Work(ctx, s.SQS, s.URL, h) })

// killed charges as the loop of before does, and dies before its deletes. A loop with dedup follows: it finds no records.
func killed(ctx context.Context, s stack, effect func(string) error) error {
	old, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	err := Consume(old, s.SQS, s.URL, func(_ context.Context, o Order) error { return errors.Join(effect(o.ID), errKilled) })
	if old.Err() == nil {
		return err
	}
	return consumeOnce(ctx, s, effect)
}

var errKilled = errors.New("killed before the delete")

func TestSteps(t *testing.T) {
	for name, step := range map[string]migratetest.Step{
		"before: every copy has an effect":                     {Send: []producer{send, send}, Consume: []consumer{consume}, Want: 2},
		"dedup: a message that is delivered twice":             {Send: []producer{send}, Twice: true, Consume: []consumer{consumeOnce}, Want: 1},
		"dedup: an event that is sent twice":                   {Send: []producer{send, send}, Consume: []consumer{consumeOnce}, Want: 2},
		"dedup: after a loop without it":                       {Send: []producer{sendWithID}, Consume: []consumer{killed}, Want: 2},
		"dedup: many loops":                                    {Send: []producer{send}, Twice: true, Consume: []consumer{consumeOnce, consumeOnce}, Want: 1},
		"IDs: an event that is sent twice":                     {Send: []producer{sendWithID, sendWithID}, Twice: true, Consume: []consumer{consumeOnce}, Want: 1},
		"IDs: both producers":                                  {Send: []producer{sendWithID, publish}, Consume: []consumer{consumeOnce}, Want: 1},
		"IDs: the producers of before and after, the old loop": {Send: []producer{send, sendWithID}, Consume: []consumer{consume}, Want: 2},
		"worker":                              {Send: []producer{sendWithID, publish}, Twice: true, Consume: []consumer{work}, Want: 1},
		"worker beside the loop":              {Send: []producer{sendWithID, publish}, Twice: true, Consume: []consumer{work, consumeOnce}, Want: 1},
		"worker beside the loop, without IDs": {Send: []producer{send}, Twice: true, Consume: []consumer{work, consumeOnce}, Want: 1},
		"what is in progress is not deleted":  {Send: []producer{publish}, Fails: true, Consume: []consumer{consumeOnce, consumeOnce}, Want: 1},
	} {
		t.Run(name, func(t *testing.T) { migratetest.Run(t, step) })
	}
}
