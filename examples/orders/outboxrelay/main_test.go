package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"gopkg.in/yaml.v3"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// bed is the function in memory, with template.yaml's names.
type bed struct {
	*testing.T
	*localstack.Stack
	box *dynamooutbox.Outbox
	handler
	log strings.Builder
}

func start(t *testing.T) *bed {
	t.Helper()
	stack, err := localstack.Start(t.Context(), func(o *localstack.Options) {
		o.Queues, o.InMemory = []localstack.Queue{{Name: "orders.fifo"}}, true
	})
	b := &bed{T: t, Stack: stack}
	b.must(err)
	t.Cleanup(func() { b.must(stack.Close(context.Background())) })
	b.must(dynamooutbox.CreateTable(t.Context(), stack.DynamoDB, "outbox"))
	env := map[string]string{"OUTBOX_TABLE": "outbox", "QUEUE_URL": stack.QueueURL["orders.fifo"]}
	b.handler = must.Get(newHandler(stack.DynamoDB, stack.SQS, func(name string) string { return env[name] }, slog.New(slog.NewJSONHandler(&b.log, nil))))(b)
	b.box = must.Get(dynamooutbox.New(stack.DynamoDB, "outbox", "orders", "orders"))(b)
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) commit(group string, seq int64, body string) {
	b.Helper()
	put := must.Get(b.box.Put(fifo.Event{ID: group + "/" + string(rune('0'+seq)), Group: group, Body: body}, seq))(b)
	must.Get(b.DynamoDB.TransactWriteItems(b.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{{Put: put}}}))(b)
}

// invoke invokes the function as the table's stream does for a new item of each group, or without groups as the schedule does.
func (b *bed) invoke(groups ...string) any {
	b.Helper()
	event := any(map[string]string{"source": "aws.events"})
	if len(groups) > 0 {
		e := events.DynamoDBEvent{}
		for _, g := range groups {
			e.Records = append(e.Records, events.DynamoDBEventRecord{
				EventName: "INSERT", EventSourceArn: "arn:aws:dynamodb:us-east-1:000000000000:table/outbox/stream/now",
				Change: events.DynamoDBStreamRecord{SequenceNumber: g, Keys: map[string]events.DynamoDBAttributeValue{
					"pk": events.NewStringAttribute("orders#" + g), "seq": events.NewNumberAttribute("1"),
				}},
			})
		}
		event = e
	}
	raw := must.Get(json.Marshal(event))(b)
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	return must.Get(b.handler(ctx, raw))(b)
}

// TestRelayActions publishes by both doorbells, with an event that SQS refuses and one whose group begins behind what was published,
// and compares the calls with the role of template.yaml.
func TestRelayActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		must.Get(b.SQS.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
			QueueUrl: aws.String(b.QueueURL["orders.fifo"]), Attributes: map[string]string{string(sqstypes.QueueAttributeNameMaximumMessageSize): "2048"},
		}))(b)
		b.MemDynamoDB().Set(fault.Plan{}) // the calls of the setup are not the relay's
		before := len(b.MemDynamoDB().Calls())
		b.commit("a", 1, "{}")
		b.commit("a", 2, "{}")
		b.commit("b", 3, "{}") // a read asks for the one before it
		b.commit("c", 1, strings.Repeat("x", 3_000))
		answer := b.invoke("a", "b", "c").(events.DynamoDBEventResponse)
		if len(answer.BatchItemFailures) != 0 {
			t.Errorf("the shard waits for %v", answer.BatchItemFailures)
		}
		if got := len(b.MemSQS().Messages("orders.fifo")); got != 3 {
			t.Errorf("%d messages, want 3", got)
		}
		time.Sleep(10 * time.Minute)
		if got := b.invoke().(outbox.Backlog); got.Groups != 1 || got.Halted != 1 {
			t.Errorf("the sweep has seen %+v, want the halted group", got)
		}
		if !strings.Contains(b.log.String(), `"msg":"outbox: swept","queue":"`+b.QueueURL["orders.fifo"]+`","groups":1,"oldest_seconds":600.011,"halted":1,"skipped":0,"overdue_seconds":0}`) {
			t.Errorf("the metric filters do not find the sweep's line in\n%s", b.log.String())
		}

		used := map[string]bool{}
		for _, c := range b.MemDynamoDB().Calls()[before:] {
			used["dynamodb:"+map[string]string{"TransactGetItems": "GetItem"}[c.Op]] = true
			used["dynamodb:"+c.Op] = true
		}
		for _, c := range b.MemSQS().Calls() {
			used["sqs:"+strings.TrimSuffix(c.Op, "Batch")] = true
		}
		allowed := roleActions(t)
		for _, a := range allowed {
			byLambda := strings.HasPrefix(a, "logs:") || strings.HasPrefix(a, "xray:") || strings.Contains(a, "Stream") || a == "dynamodb:GetRecords" || a == "dynamodb:GetShardIterator"
			// Discard, and what the publisher asks where a message may be too large.
			seldom := a == "dynamodb:DeleteItem" || a == "sqs:GetQueueAttributes"
			if !used[a] && !byLambda && !seldom {
				t.Errorf("the role allows %s, which nothing uses", a)
			}
		}
		for a := range used {
			setup := strings.Contains(a, "TransactWriteItems") || strings.Contains(a, "TransactGetItems") || strings.Contains(a, "Queue") || strings.Contains(a, "Table") || a == "dynamodb:"
			if !slices.Contains(allowed, a) && !setup {
				t.Errorf("the role does not allow %s", a)
			}
		}
	})
}

// roleActions are those of template.yaml.
func roleActions(t *testing.T) (actions []string) {
	t.Helper()
	var template struct {
		Resources struct {
			OutboxRelayRole struct {
				Properties struct {
					Policies []struct {
						PolicyDocument struct {
							Statement []struct {
								Action []string `yaml:"Action"`
							} `yaml:"Statement"`
						} `yaml:"PolicyDocument"`
					} `yaml:"Policies"`
				} `yaml:"Properties"`
			} `yaml:"OutboxRelayRole"`
		} `yaml:"Resources"`
	}
	must.Do(t, yaml.Unmarshal(readFile(t, "../../../template.yaml"), &template))
	for _, p := range template.Resources.OutboxRelayRole.Properties.Policies {
		for _, s := range p.PolicyDocument.Statement {
			actions = append(actions, s.Action...)
		}
	}
	if len(actions) == 0 {
		t.Fatal("template.yaml has no role of the relay: nothing was compared")
	}
	return actions
}

func TestBadEnvironment(t *testing.T) {
	_, err := newHandler(dynamodb.New(dynamodb.Options{}), sqs.New(sqs.Options{}), func(string) string { return "" }, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "queueURL") {
		t.Errorf("without a queue: %v", err)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(name))(t)
}
