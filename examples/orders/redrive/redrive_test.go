package redrive

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// An event of which three messages are rejected has run once after the redrive, and nothing is left.
func TestRun(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB"} {
		t.Setenv(name, "")
	}
	archive := filepath.Join(t.TempDir(), "deleted.jsonl")
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		stack := must.Get(localstack.Start(ctx, func(o *localstack.Options) { o.Queues = []localstack.Queue{{Name: "orders"}} }))(t)
		t.Cleanup(func() { _ = stack.Close(context.Background()) }) // in memory
		store, mended, ran := memstore.New(), false, 0
		once := must.Get(dedup.New(store, "billing"))(t)
		handler := once.Handler(func(context.Context, *sqsonce.Message) error {
			if !mended {
				return sqsonce.Reject(errors.New("unknown article 10"))
			}
			ran++
			return nil
		})
		text := func(s string) sqstypes.MessageAttributeValue {
			return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
		}
		for range 3 {
			must.Get(stack.SQS.SendMessage(ctx, &sqs.SendMessageInput{
				QueueUrl: aws.String(stack.QueueURL["orders"]), MessageBody: aws.String("body"), MessageAttributes: map[string]sqstypes.MessageAttributeValue{
					sqsonce.AttrEventSource: text("orders"), sqsonce.AttrEventID: text("ord-1"),
				},
			}))(t)
		}
		w := must.Get(sqsworker.New(stack.SQS, stack.QueueURL["orders"], handler, func(o *sqsworker.Options) {
			o.Logger, o.Concurrency = slog.New(slog.DiscardHandler), 1
		}))(t)
		running, stop := context.WithCancel(ctx)
		stopped := make(chan error, 1)
		go func() { stopped <- w.Run(running) }()
		time.Sleep(10 * time.Minute) // the same event is not rejected twice at once
		if n := len(stack.MemSQS().Messages("orders-dlq")); n != 3 {
			t.Errorf("%d dead letters, want 3", n)
		}
		mended = true
		var out strings.Builder
		if err := Run(ctx, stack.SQS, stack.QueueURL["orders-dlq"], store, "billing", archive, &out); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if left := len(stack.MemSQS().Messages("orders-dlq")) + len(stack.MemSQS().Messages("orders")); left != 0 || ran != 1 {
			t.Errorf("%d messages left, and the event ran %d times, want none and once", left, ran)
		}
		want := "3 dead letters (released): sqsonce: rejected: unknown article *\n1 redriven, 2 deleted whose event was done\n"
		if out.String() != want {
			t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
		}
	})
	if text, err := os.ReadFile(archive); err != nil || !strings.Contains(string(text), `"body":"body"`) {
		t.Errorf("archive %q, %v, want what was deleted", text, err)
	}
}
