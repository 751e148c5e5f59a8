package orders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// How to test your own handler: put it in the place of charge. Two real workers, or a function behind a mapping, run it with a
// real SDK client on an SQS in memory, with a fault. Time is virtual: minutes of waiting take milliseconds.

func TestOwnHandler(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"nothing goes wrong":                  {},
		"messages are delivered twice":        {Op: "ReceiveMessage", Nth: 1, Times: 10, Do: fault.Duplicate},
		"visibility timeouts end early":       {Op: "ReceiveMessage", Nth: 1, Times: 10, Do: fault.ExpireEarly},
		"deletes do not arrive":               {Op: "DeleteMessageBatch", Nth: 1, Times: 5, Do: fault.Reset},
		"deletes are repeated a minute later": {Op: "DeleteMessageBatch", Nth: 1, Times: 5, Do: fault.Replay, Delay: time.Minute},
		"responses of receives are lost":      {Op: "ReceiveMessage", Nth: 1, Times: 5, Do: fault.LoseReply},
	} {
		for host, run := range map[string]func(*testing.T, *localstack.Stack, dedup.Store, sqsonce.Handler, time.Duration){
			"workers": runWorkers, "function": runFunction,
		} {
			t.Run(host+"/"+name, func(t *testing.T) {
				withQueue(t, func(t *testing.T, stack *localstack.Stack) {
					var charged atomic.Int32
					charge := func(context.Context, *sqsonce.Message) error {
						charged.Add(1)
						time.Sleep(10 * time.Second)
						return nil
					}
					stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{rule}})
					for i := range 10 {
						time.AfterFunc(time.Duration(i)*time.Second, func() { send(t, stack, fmt.Sprintf("order %d", i)) })
					}
					run(t, stack, memstore.New(), charge, 10*time.Minute)
					if n, left := charged.Load(), stack.MemSQS().Messages("orders"); n != 10 || len(left) > 0 {
						t.Errorf("charged %d times, messages left in the queue %+v, want 10 and none", n, left)
					}
				})
			})
		}
	}
}

// A process charges, completes the record, and dies before it deletes the message. When the visibility timeout ends
// another process receives the message.
func TestOwnHandlerAfterACrash(t *testing.T) {
	withQueue(t, func(t *testing.T, stack *localstack.Stack) {
		charged := 0
		charge := func(context.Context, *sqsonce.Message) error { charged++; return nil }
		store := memstore.New()
		send(t, stack, "order 1")

		out, err := stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(stack.QueueURL["orders"])})
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("received %d messages (%v), want 1", len(out.Messages), err)
		}
		m := &sqsonce.Message{ID: *out.Messages[0].MessageId, Body: *out.Messages[0].Body, QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", ReceiveCount: 1}
		noError(t, once(t, store, charge)(t.Context(), m))

		runWorkers(t, stack, store, charge, 5*time.Minute)
		if remaining := stack.MemSQS().Messages("orders"); charged != 1 || len(remaining) > 0 {
			t.Errorf("charged %d times, %d messages remain, want 1 and 0", charged, len(remaining))
		}
	})
}

// DynamoDB writes the records, but its answers are lost: of one acquire or complete (UpdateItem), or of several at once
// (BatchExecuteStatement). Each order is still charged once.
func TestOwnHandlerWithoutAnswersOfTheStore(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"answers of acquires and completes are lost": {Op: "UpdateItem", Nth: 1, Times: 5, Do: fault.LoseReply},
		"answers of several at once are lost":        {Op: "BatchExecuteStatement", Nth: 1, Times: 5, Do: fault.LoseReply},
	} {
		t.Run(name, func(t *testing.T) {
			withQueue(t, func(t *testing.T, stack *localstack.Stack) {
				stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{rule}})
				var charged atomic.Int32
				charge := func(context.Context, *sqsonce.Message) error {
					charged.Add(1)
					time.Sleep(time.Second)
					return nil
				}
				store, err := dynamostore.New(stack.DynamoDB, "dedup")
				noError(t, err)
				for i := range 50 {
					send(t, stack, fmt.Sprintf("order %d", i))
				}
				runWorkers(t, stack, store, charge, 10*time.Minute)
				if !slices.ContainsFunc(stack.MemDynamoDB().Calls(), func(c fault.Call) bool { return c.Fault != nil }) {
					t.Errorf("no call of %s lost its answer", rule.Op)
				}
				if n, left := charged.Load(), stack.MemSQS().Messages("orders"); n != 50 || len(left) > 0 {
					t.Errorf("charged %d times, messages left in the queue %+v, want 50 and none", n, left)
				}
			})
		})
	}
}

// The first attempt of an order fails in a function: only this order runs again.
func TestOwnFunction(t *testing.T) {
	withQueue(t, func(t *testing.T, stack *localstack.Stack) {
		var mu sync.Mutex
		attempts := map[string]int{}
		charge := func(_ context.Context, m *sqsonce.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if attempts[m.Body]++; m.Body == "order 3" && attempts[m.Body] == 1 {
				return errors.New("declined")
			}
			return nil
		}
		for i := range 5 {
			send(t, stack, fmt.Sprintf("order %d", i))
		}
		runFunction(t, stack, memstore.New(), charge, 5*time.Minute)
		if remaining := stack.MemSQS().Messages("orders"); len(remaining) > 0 || attempts["order 3"] != 2 || attempts["order 4"] != 1 {
			t.Errorf("%d messages remain, attempts %v; want one for each and two for order 3", len(remaining), attempts)
		}
	})
}

// withQueue runs f in virtual time, with a queue named orders and a table of records.
func withQueue(t *testing.T, f func(*testing.T, *localstack.Stack)) {
	synctest.Test(t, func(t *testing.T) {
		stack, err := localstack.Start(t.Context(), func(o *localstack.Options) {
			o.InMemory = true // although AWS_ENDPOINT_URL may be set
			o.Queues, o.Tables = []localstack.Queue{{Name: "orders"}}, []string{"dedup"}
		})
		noError(t, err)
		f(t, stack)
		if err := stack.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// once returns h with its records in store. Each process has its own; in production the store outlives the processes.
func once(t *testing.T, store dedup.Store, h sqsonce.Handler) sqsonce.Handler {
	o, err := dedup.New(store, "billing")
	noError(t, err)
	return o.Handler(h)
}

func send(t *testing.T, stack *localstack.Stack, body string) {
	if _, err := stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(stack.QueueURL["orders"]), MessageBody: &body}); err != nil {
		t.Error(err)
	}
}

// runWorkers runs two workers for d, as two processes with one store, and stops them.
func runWorkers(t *testing.T, stack *localstack.Stack, store dedup.Store, h sqsonce.Handler, d time.Duration) {
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var wg sync.WaitGroup
	for range 2 {
		w, err := sqsworker.New(stack.SQS, stack.QueueURL["orders"], once(t, store, h))
		noError(t, err)
		wg.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// runFunction runs a function behind a mapping for d.
func runFunction(t *testing.T, stack *localstack.Stack, store dedup.Store, h sqsonce.Handler, d time.Duration) {
	function, err := lambda.Wrap(once(t, store, h), func(o *lambda.Options) { o.Client = stack.SQS })
	noError(t, err)
	invoke := func(ctx context.Context, event []byte) ([]byte, error) {
		var e events.SQSEvent
		if err := json.Unmarshal(event, &e); err != nil {
			return nil, err
		}
		response, err := function(ctx, e)
		if err != nil {
			return nil, err
		}
		return json.Marshal(response)
	}
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	err = esm.Run(ctx, stack.SQS, esm.Config{
		QueueURL: stack.QueueURL["orders"], FunctionTimeout: 30 * time.Second, ReportBatchItemFailures: true,
	}, invoke)
	if err != nil {
		t.Error(err)
	}
}
