package awslambda

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/migratetest"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

type (
	stack    = migratetest.Stack
	producer = func(context.Context, stack, string) error
	consumer = func(context.Context, stack, func(string) error) error
	function = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
)

func send(ctx context.Context, s stack, id string) error {
	_, err := s.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &s.URL, MessageBody: aws.String(`{"id":"` + id + `"}`)})
	return err
}

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

// invoke runs f behind an event source mapping.
func invoke(ctx context.Context, s stack, f function) error {
	return esm.Run(ctx, s.SQS, esm.Config{
		QueueURL: s.URL, ReportBatchItemFailures: true, FunctionTimeout: 25 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}, awslambda.NewHandler(f).Invoke)
}

func before(ctx context.Context, s stack, effect func(string) error) error {
	return invoke(ctx, s, Function(charge(effect)))
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

var once = handled(func(ctx context.Context, s stack, h sqsonce.Handler) error { return invoke(ctx, s, FunctionOnce(h)) })

// hosted is what Start runs, with a client of the test's.
var hosted = handled(func(ctx context.Context, s stack, h sqsonce.Handler) error {
	f, err := lambda.Wrap(h, func(o *lambda.Options) { o.Client, o.Logger = s.SQS, slog.New(slog.DiscardHandler) })
	if err != nil {
		return err
	}
	return invoke(ctx, s, f)
})

func TestSteps(t *testing.T) {
	for name, step := range map[string]migratetest.Step{
		"before: every copy has an effect":         {Send: []producer{send, send}, Consume: []consumer{before}, Want: 2},
		"dedup: a message that is delivered twice": {Send: []producer{send}, Twice: true, Consume: []consumer{once}, Want: 1},
		"dedup: an event that is sent twice":       {Send: []producer{send, send}, Consume: []consumer{once}, Want: 2},
		"dedup: with IDs":                          {Send: []producer{publish, publish}, Twice: true, Consume: []consumer{once}, Want: 1},
		"host":                                     {Send: []producer{publish, publish}, Twice: true, Consume: []consumer{hosted}, Want: 1},
		"host beside the function with dedup":      {Send: []producer{publish, publish}, Twice: true, Consume: []consumer{hosted, once}, Want: 1},
		"host beside it, without IDs":              {Send: []producer{send}, Twice: true, Consume: []consumer{hosted, once}, Want: 1},
		"what is in progress is not deleted":       {Send: []producer{publish}, Fails: true, Consume: []consumer{once, once}, Want: 1},
	} {
		t.Run(name, func(t *testing.T) { migratetest.Run(t, step) })
	}
}

// The loops and functions of one queue have one key for a message without an event ID.
func TestKeyIsTheWorkers(t *testing.T) {
	const arn = "arn:aws:sqs:us-east-1:000000000000:orders"
	ours, _, err := lambda.MessageOf(events.SQSMessage{MessageId: "m1", EventSourceARN: arn}).Key()
	theirs, _, workerErr := sqsworker.MessageOf(sqstypes.Message{MessageId: aws.String("m1")}, arn).Key()
	if err != nil || workerErr != nil || ours != theirs {
		t.Errorf("got %q, %v in a function and %q, %v in a loop, want the same", ours, err, theirs, workerErr)
	}
}

// A record lease that outlives its process delays the event: it ends with the invocation's time.
func TestLeaseEndsWithTheInvocation(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	deadline, _ := ctx.Deadline()
	f := FunctionOnce(func(_ context.Context, m *sqsonce.Message) error {
		if !m.KillAt.Equal(deadline) {
			t.Errorf("KillAt %s, want the invocation's deadline, %s", m.KillAt, deadline)
		}
		return errors.New("failed")
	})
	r, err := f(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m1"}}})
	if err != nil || len(r.BatchItemFailures) != 1 || r.BatchItemFailures[0].ItemIdentifier != "m1" {
		t.Errorf("got %+v, %v, want m1 failed", r, err)
	}
}
