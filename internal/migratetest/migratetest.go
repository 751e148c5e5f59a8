// Package migratetest runs the programs of docs/migrate.md: producers and consumers on SQS and DynamoDB in memory, in virtual
// time.
package migratetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// The names of what [Run] creates.
const (
	Queue = "orders"
	Table = "dedup"
)

// Stack is what programs run on.
type Stack struct {
	*localstack.Stack
	URL, ARN string // of the queue
}

// Step is what runs in a test.
type Step struct {
	// Before runs before anything is sent, such as the writer of records that are there already.
	Before func(ctx context.Context, s Stack) error
	// Send are producers: each of them sends each event.
	Send []func(ctx context.Context, s Stack, id string) error
	// Consume are consumers, which run beside each other until ctx ends.
	Consume []func(ctx context.Context, s Stack, effect func(id string) error) error
	// Twice makes SQS deliver the messages of the first receives twice.
	Twice bool
	// Fails makes the first try of each event fail. The visibility timeouts of the first receives end early, so that other
	// consumers get the message meanwhile.
	Fails bool
	// Want is how often each event has its effect.
	Want int
}

// Run sends three events, runs the consumers for a quarter of an hour, and counts the effects of each event.
func Run(t *testing.T, step Step) {
	t.Helper()
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB"} {
		t.Setenv(name, "") // a bubble cannot wait for sockets
	}
	synctest.Test(t, func(t *testing.T) {
		stack, err := localstack.Start(context.Background(), func(o *localstack.Options) {
			o.Queues, o.Tables = []localstack.Queue{{Name: Queue}}, []string{Table}
		})
		if err != nil {
			t.Fatal(err)
		}
		s := Stack{Stack: stack, URL: stack.QueueURL[Queue], ARN: "arn:aws:sqs:us-east-1:000000000000:" + Queue}
		if step.Fails {
			stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 1, Times: 2, Do: fault.ExpireEarly}}})
		} else if step.Twice {
			stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 1, Times: 2, Do: fault.Duplicate}}})
		}
		effects := step.run(t, s)
		for _, id := range events {
			if effects[id] != step.Want {
				t.Errorf("event %s: %d effects, want %d", id, effects[id], step.Want)
			}
		}
		for _, name := range []string{Queue, Queue + "-dlq"} {
			if left := stack.MemSQS().Messages(name); len(left) > 0 {
				t.Errorf("%d messages left in %s", len(left), name)
			}
		}
		if err := stack.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

var errFirstTry = errors.New("the first try fails")

var events = []string{"ord-1/v1", "ord-1/v2", "ord-2/v1"}

func (step Step) run(t *testing.T, s Stack) map[string]int {
	ctx, stop := context.WithTimeout(context.Background(), 15*time.Minute)
	defer stop()
	if step.Before != nil {
		if err := step.Before(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	for _, send := range step.Send {
		for _, id := range events {
			if err := send(ctx, s, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	var mu sync.Mutex
	effects, tried := map[string]int{}, map[string]bool{}
	effect := func(id string) error {
		time.Sleep(time.Second) // other consumers meet the event in progress
		mu.Lock()
		defer mu.Unlock()
		if step.Fails && !tried[id] {
			tried[id] = true
			return errFirstTry
		}
		effects[id]++
		return nil
	}
	var running sync.WaitGroup
	for i, consume := range step.Consume {
		running.Go(func() {
			time.Sleep(time.Duration(i) * 300 * time.Millisecond) // while the first one handles its first event
			if err := consume(ctx, s, effect); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	return effects
}
