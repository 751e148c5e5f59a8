package orders

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestTemplateActions runs the function behind its mapping through success, failure, duplicate and reject, and holds the
// calls that were made against the role: none that it does not allow, and each that it allows.
func TestTemplateActions(t *testing.T) {
	inMemory(t)
	synctest.Test(t, func(t *testing.T) {
		handler, stack := newHandler(t, "", func(o *localstack.Options) {
			o.Queues = []localstack.Queue{{Name: "orders"}}
		})
		url := stack.QueueURL["orders"]
		for _, body := range []string{
			`{"id":"ord-1/placed","account":"acct-1","amount":250}`,
			`{"id":"ord-2/placed","account":"","amount":250}`, // fails: no item has an empty key
			`not json`, // rejected
		} {
			if _, err := stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
				t.Fatal(err)
			}
		}
		f, err := lambda.Wrap(handler, func(o *lambda.Options) {
			o.Client, o.DeadLetterQueue = stack.SQS, stack.QueueURL["orders-dlq"]
			// Not the random default, by which the message that fails may have its last receive within the test.
			o.Backoff = func(int) time.Duration { return time.Minute }
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		err = esm.Run(ctx, stack.SQS, esm.Config{
			QueueURL: url, ReportBatchItemFailures: true, FunctionTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		}, func(ctx context.Context, event []byte) ([]byte, error) {
			var e events.SQSEvent
			if err := json.Unmarshal(event, &e); err != nil {
				return nil, err
			}
			r, err := f(ctx, e)
			if err != nil {
				return nil, err
			}
			return json.Marshal(r)
		})
		if err != nil {
			t.Fatal(err)
		}
		if dead := stack.MemSQS.Messages("orders-dlq"); len(dead) != 1 {
			t.Fatalf("%d messages in the dead-letter queue, want the one that is no JSON: not all paths were taken", len(dead))
		}

		used := []string{
			"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTelemetryRecords", "xray:PutTraceSegments", // Lambda's own
			"dynamodb:GetItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", // the store's group commit
		}
		for _, service := range []struct {
			prefix string
			calls  []fault.Call
		}{{"sqs:", stack.MemSQS.Calls()}, {"dynamodb:", stack.MemDynamoDB.Calls()}} {
			for _, c := range service.calls {
				used = append(used, service.prefix+action(c.Op))
			}
		}
		slices.Sort(used)
		used = slices.DeleteFunc(slices.Compact(used), func(a string) bool {
			// What set the test up.
			return strings.Contains(a, "Create") && !strings.HasPrefix(a, "logs:") || strings.Contains(a, "Describe") || strings.Contains(a, "UpdateTimeToLive")
		})
		if !slices.Equal(used, actions) {
			t.Errorf("used %v\nallowed %v", used, actions)
		}
	})
}

// action is the permission that an operation needs: the batch operations of SQS need that of the single one, and a
// transaction or a batch of statements that of each of its writes.
func action(op string) string {
	switch op {
	case "TransactWriteItems":
		return "UpdateItem"
	case "BatchExecuteStatement":
		return "PartiQLInsert"
	}
	return strings.TrimSuffix(op, "Batch")
}
