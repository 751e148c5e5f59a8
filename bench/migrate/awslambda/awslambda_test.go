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
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/migratetest"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

type stack = migratetest.Stack

// invoke runs f behind an event source mapping.
func invoke(ctx context.Context, s stack, f func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)) error {
	return esm.Run(ctx, s.SQS, esm.Config{
		QueueURL: s.URL, ReportBatchItemFailures: true, FunctionTimeout: 25 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}, awslambda.NewHandler(f).Invoke)
}

func TestSteps(t *testing.T) {
	migratetest.Recipe{
		Send: migratetest.Send, SendWithID: migratetest.Publish,
		Before: func(ctx context.Context, s stack, charge func(context.Context, Order) error) error {
			return invoke(ctx, s, Function(charge))
		},
		Dedup: func(ctx context.Context, s stack, h sqsonce.Handler) error { return invoke(ctx, s, FunctionOnce(h)) },
		// What Start runs, with a client of the test's.
		Host: func(ctx context.Context, s stack, h sqsonce.Handler) error {
			f, err := lambda.Wrap(h, func(o *lambda.Options) { o.Client, o.Logger = s.SQS, slog.New(slog.DiscardHandler) })
			if err != nil {
				return err
			}
			return invoke(ctx, s, f)
		},
	}.Run(t)
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
