// Package testworld is for tests of the command: AWS in memory, and a consumer.
package testworld

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
)

const (
	Consumer = "billing"
	Table    = "dedup"
)

// Start starts AWS in memory, with Table, until the test ends.
func Start(t testing.TB, optFn func(*localstack.Options)) *localstack.Stack {
	t.Helper()
	stack := must.Get(localstack.Start(context.Background(), func(o *localstack.Options) { o.Tables = []string{Table}; optFn(o) }))(t)
	t.Cleanup(func() { must.Do(t, stack.Close(context.Background())) })
	return stack
}

// Send sends a message and returns its ID. The attributes are pairs of a name and a value. The group is that on a FIFO queue.
func Send(t testing.TB, stack *localstack.Stack, queue, group, body string, attributes ...string) (id string) {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: aws.String(stack.QueueURL[queue]), MessageBody: &body, MessageAttributes: map[string]sqstypes.MessageAttributeValue{}}
	for i := 0; i < len(attributes); i += 2 {
		in.MessageAttributes[attributes[i]] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &attributes[i+1]}
	}
	if strings.HasSuffix(queue, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = &group, aws.String(rand.Text())
	}
	return *must.Get(stack.SQS.SendMessage(context.Background(), in))(t).MessageId
}

// Event are the attributes of an event.
func Event(id string) []string {
	return []string{sqsonce.AttrEventID, id, sqsonce.AttrEventSource, "orders"}
}

// Hidden returns how many messages of a queue are hidden.
func Hidden(stack *localstack.Stack, queue string) (n int) {
	for _, m := range stack.MemSQS().Messages(queue) {
		if m.InFlight {
			n++
		}
	}
	return n
}

var quiet = slog.New(slog.DiscardHandler)

// Store returns a store of the records in Table.
func Store(t testing.TB, stack *localstack.Stack) *dynamostore.Store {
	t.Helper()
	return must.Get(dynamostore.New(stack.DynamoDB, Table, func(o *dynamostore.Options) { o.Logger = quiet }))(t)
}

// Consume runs a consumer of a queue until the test ends.
func Consume(t testing.TB, stack *localstack.Stack, store dedup.Store, queue string, h sqsonce.Handler) (*sqsworker.Worker, *dedup.Once) {
	t.Helper()
	once := must.Get(dedup.New(store, Consumer, func(o *dedup.Options) { o.Logger = quiet }))(t)
	worker := must.Get(sqsworker.New(stack.SQS, stack.QueueURL[queue], sqsonce.OpenEnvelope(once.Handler(h)), func(o *sqsworker.Options) {
		o.Logger, o.WaitTime = quiet, time.Second
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must.Do(t, <-ended)
	})
	return worker, once
}

// Eventually waits for a condition of processes on a machine that does other work beside.
func Eventually(t testing.TB, what string, ok func() bool, dump ...func() string) {
	t.Helper()
	const most = 5 * time.Minute
	for end := time.Now().Add(most); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			for _, d := range dump {
				what += "\n" + d()
			}
			t.Fatalf("not within %v: %s", most, what)
		}
	}
}
