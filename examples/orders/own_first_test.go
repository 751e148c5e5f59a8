package orders

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// A producer sends an order twice, SQS delivers a message twice, and DynamoDB is down for a quarter of an hour. The order is charged
// once, and stays out of the dead-letter queue.
func TestChargesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in virtual time: the test takes milliseconds
		stack, err := localstack.Start(t.Context(), func(o *localstack.Options) {
			o.InMemory = true // SQS and DynamoDB run in this process
			o.Queues, o.Tables = []localstack.Queue{{Name: "orders"}}, []string{"dedup"}
		})
		noError(t, err)
		defer stack.Close(context.Background())
		stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate}}})
		stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Prob: 1, Do: fault.Error}}})
		time.AfterFunc(15*time.Minute, func() { stack.MemDynamoDB().Set(fault.Plan{}) })

		charged := 0
		charge := func(context.Context, *sqsonce.Message) error { charged++; return nil } // your handler
		store, err := dynamostore.New(stack.DynamoDB, "dedup")
		noError(t, err)
		once, err := dedup.New(store, "billing")
		noError(t, err)
		worker, err := sqsworker.New(stack.SQS, stack.QueueURL["orders"], once.Handler(charge))
		noError(t, err)
		publisher, err := fifo.NewPublisher(stack.SQS, stack.QueueURL["orders"], "orders")
		noError(t, err)
		for range 2 {
			_, err = publisher.Publish(t.Context(), fifo.Event{ID: "ord-42/v1", Body: `{"id":"ord-42"}`})
			noError(t, err)
		}

		ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
		defer stop()
		noError(t, worker.Run(ctx))
		if left, dead := stack.MemSQS().Messages("orders"), stack.MemSQS().Messages("orders-dlq"); charged != 1 || len(left)+len(dead) > 0 {
			t.Errorf("charged %d times, messages left %+v and dead %+v, want 1 and none", charged, left, dead)
		}
	})
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
