package orders

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestTemplate(t *testing.T) {
	text := readTemplate(t)
	problems, checked := checkTemplate([]byte(text), dynamostore.TTLAttribute)
	for _, p := range problems {
		t.Error(p)
	}
	// A parser that understands nothing finds no problem.
	if want := 2; checked != want {
		t.Errorf("checked %d event source mappings, want %d", checked, want)
	}
}

// TestTemplateActions runs the function behind its mapping through success, failure and reject, and compares the calls that
// were made with the role: it must allow these actions and no others.
func TestTemplateActions(t *testing.T) {
	inMemory(t)
	synctest.Test(t, func(t *testing.T) {
		handler, stack := newHandler(t, "", func(o *localstack.Options) {
			o.Queues = []localstack.Queue{{Name: "orders"}}
		})
		url := stack.QueueURL["orders"]
		for _, body := range []string{
			`{"id":"ord-1/placed","account":"acct-1","amount":250}`,
			`{"id":"ord-2/placed","account":"","amount":250}`, // fails: DynamoDB refuses an empty key
			`not json`, // rejected
		} {
			must.Get(stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}))(t)
		}
		f := must.Get(lambda.Wrap(handler, func(o *lambda.Options) {
			o.Client, o.DeadLetterQueue = stack.SQS, stack.QueueURL["orders-dlq"]
			// The default is random: with it the failing message may have its last receive within the test.
			o.Backoff = func(int) time.Duration { return time.Minute }
		}))(t)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		must.Do(t, esm.Run(ctx, stack.SQS, esm.Config{
			QueueURL: url, ReportBatchItemFailures: true, FunctionTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		}, testaws.Invoke(f)))
		if dead := stack.MemSQS().Messages("orders-dlq"); len(dead) != 1 {
			t.Fatalf("%d messages in the dead-letter queue, want the one that is not JSON", len(dead))
		}

		used := []string{
			"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTelemetryRecords", "xray:PutTraceSegments", // by Lambda itself
			"dynamodb:GetItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", // by the store's group commit, which needs more deliveries at once
		}
		for _, service := range []struct {
			prefix string
			calls  []fault.Call
		}{{"sqs:", stack.MemSQS().Calls()}, {"dynamodb:", stack.MemDynamoDB().Calls()}} {
			for _, c := range service.calls {
				used = append(used, service.prefix+action(c.Op))
			}
		}
		slices.Sort(used)
		used = slices.DeleteFunc(slices.Compact(used), func(a string) bool {
			// The setup of the test.
			return strings.Contains(a, "Create") && !strings.HasPrefix(a, "logs:") || strings.Contains(a, "Describe") || strings.Contains(a, "UpdateTimeToLive")
		})
		if !slices.Equal(used, actions) {
			t.Errorf("used %v\nallowed %v", used, actions)
		}
	})
}

// action returns the action that an operation needs. SQS's batch operations need the action of the single operation; a
// transaction and a batch of statements need the action of each write.
func action(op string) string {
	switch op {
	case "TransactWriteItems":
		return "UpdateItem"
	case "BatchExecuteStatement":
		return "PartiQLInsert"
	}
	return strings.TrimSuffix(op, "Batch")
}

func readTemplate(t *testing.T) string {
	t.Helper()
	return string(must.Get(os.ReadFile("../../template.yaml"))(t))
}
