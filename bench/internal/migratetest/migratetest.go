// Package migratetest runs the programs of docs/migrate.md: producers and consumers on SQS and DynamoDB in memory, in virtual
// time.
package migratetest

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/migrate"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// The names of what [Run] creates. The table is that of [migrate.NewHandler].
const (
	Queue = "orders"
	Table = "dedup"
)

// Stack is what programs run on.
type Stack struct {
	*localstack.Stack
	URL, ARN string // of the queue
}

type (
	// Producer sends an event.
	Producer = func(ctx context.Context, s Stack, id string) error
	// Consumer charges the orders that it receives, until ctx ends.
	Consumer = func(ctx context.Context, s Stack, charge func(context.Context, migrate.Order) error) error
	// Host does with a handler.
	Host = func(ctx context.Context, s Stack, h sqsonce.Handler) error
)

// Send is a producer whose messages have no event ID.
func Send(ctx context.Context, s Stack, id string) error {
	_, err := s.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &s.URL, MessageBody: aws.String(`{"id":"` + id + `"}`)})
	return err
}

// Publish is a producer with the publisher of package fifo.
func Publish(ctx context.Context, s Stack, id string) error {
	p, err := fifo.NewPublisher(s.SQS, s.URL, "orders")
	if err != nil {
		return err
	}
	_, err = p.Publish(ctx, fifo.Event{ID: id, Body: `{"id":"` + id + `"}`})
	return err
}

// Work is the host of package sqsworker.
func Work(ctx context.Context, s Stack, h sqsonce.Handler) error {
	w, err := sqsworker.New(s.SQS, s.URL, h)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// Handled is a consumer with the handler of [migrate.NewHandler].
func Handled(host Host) Consumer {
	return func(ctx context.Context, s Stack, charge func(context.Context, migrate.Order) error) error {
		h, err := migrate.NewHandler(s.DynamoDB, charge)
		if err != nil {
			return err
		}
		return host(ctx, s, h)
	}
}

// Recipe is the way of one kind of consumer to sqsonce.
type Recipe struct {
	Send, SendWithID Producer
	// Before is the consumer that there is, Dedup the same one with a handler, and Host what takes its place.
	Before      Consumer
	Dedup, Host Host
	// More are steps that only this recipe has.
	More map[string]Step
}

// Run runs the steps that every recipe has, and its own.
func (r Recipe) Run(t *testing.T) {
	t.Helper()
	dedup, host := Handled(r.Dedup), Handled(r.Host)
	steps := map[string]Step{
		"before: every copy has an effect":          {Send: []Producer{r.Send, r.Send}, Consume: []Consumer{r.Before}, Want: 2},
		"dedup: a message that is delivered twice":  {Send: []Producer{r.Send}, Twice: true, Consume: []Consumer{dedup}, Want: 1},
		"dedup: an event that is sent twice":        {Send: []Producer{r.Send, r.Send}, Consume: []Consumer{dedup}, Want: 2},
		"dedup: two of them":                        {Send: []Producer{r.Send}, Twice: true, Consume: []Consumer{dedup, dedup}, Want: 1},
		"dedup: what is in progress is not deleted": {Send: []Producer{Publish}, Fails: true, Consume: []Consumer{dedup, dedup}, Want: 1},
		"IDs: an event that is sent twice":          {Send: []Producer{r.SendWithID, r.SendWithID}, Twice: true, Consume: []Consumer{dedup}, Want: 1},
		"IDs: both producers":                       {Send: []Producer{r.SendWithID, Publish}, Consume: []Consumer{dedup}, Want: 1},
		"IDs: without them too, consumer of before": {Send: []Producer{r.Send, r.SendWithID}, Consume: []Consumer{r.Before}, Want: 2},
		"host":                           {Send: []Producer{r.SendWithID, Publish}, Twice: true, Consume: []Consumer{host}, Want: 1},
		"host beside dedup":              {Send: []Producer{r.SendWithID, Publish}, Twice: true, Consume: []Consumer{host, dedup}, Want: 1},
		"host beside dedup, without IDs": {Send: []Producer{r.Send}, Twice: true, Consume: []Consumer{host, dedup}, Want: 1},
	}
	maps.Copy(steps, r.More)
	for name, step := range steps {
		t.Run(name, func(t *testing.T) { Run(t, step) })
	}
}

// Step is what runs in a test.
type Step struct {
	// Before runs before anything is sent, such as the writer of records that are there already.
	Before func(ctx context.Context, s Stack) error
	// Send are producers: each of them sends each event.
	Send []Producer
	// Consume are consumers, which run beside each other.
	Consume []Consumer
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
	charge := func(_ context.Context, o migrate.Order) error {
		time.Sleep(time.Second) // other consumers meet the event in progress
		mu.Lock()
		defer mu.Unlock()
		if step.Fails && !tried[o.ID] {
			tried[o.ID] = true
			return errFirstTry
		}
		effects[o.ID]++
		return nil
	}
	var running sync.WaitGroup
	for i, consume := range step.Consume {
		running.Go(func() {
			time.Sleep(time.Duration(i) * 300 * time.Millisecond) // while the first one handles its first event
			if err := consume(ctx, s, charge); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	return effects
}
