package orders

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// How to test your own handler: put it in place of charge. Two real workers with a real SDK client run it on an
// SQS in memory while something goes wrong; the clock is virtual, so that minutes of waiting take milliseconds.

func TestOwnHandler(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"nothing goes wrong":                {},
		"messages come twice":               {Op: "ReceiveMessage", Nth: 1, Times: 10, Do: fault.Duplicate},
		"their visibility timeout ends":     {Op: "ReceiveMessage", Nth: 1, Times: 10, Do: fault.ExpireEarly},
		"deletes do not arrive":             {Op: "DeleteMessageBatch", Nth: 1, Times: 5, Do: fault.Reset},
		"deletes are repeated much later":   {Op: "DeleteMessageBatch", Nth: 1, Times: 5, Do: fault.Replay, Delay: time.Minute},
		"received, and nobody learns of it": {Op: "ReceiveMessage", Nth: 1, Times: 5, Do: fault.LoseReply},
	} {
		t.Run(name, func(t *testing.T) {
			withQueue(t, func(t *testing.T, stack *localstack.Stack) {
				var charged atomic.Int32
				charge := func(context.Context, *sqsonce.Message) error {
					charged.Add(1)
					time.Sleep(10 * time.Second)
					return nil
				}
				stack.MemSQS.Set(fault.Plan{Rules: []fault.Rule{rule}})
				for i := range 10 {
					time.AfterFunc(time.Duration(i)*time.Second, func() { send(t, stack, fmt.Sprintf("order %d", i)) })
				}
				work(t, stack, onceIn(t, memstore.New(), charge), 10*time.Minute)
				if n := charged.Load(); n != 10 {
					t.Errorf("charged %d times, want 10", n)
				}
				if left := stack.MemSQS.Messages("orders"); len(left) > 0 {
					t.Errorf("left in the queue: %+v", left)
				}
			})
		})
	}
}

// A consumer charges and dies before it deletes the message. When the visibility timeout ends another gets the message.
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
		dies := &sqsonce.Message{ID: *out.Messages[0].MessageId, Body: *out.Messages[0].Body, QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", ReceiveCount: 1}
		if err := onceIn(t, store, charge)(t.Context(), dies); err != nil {
			t.Fatal(err)
		}

		work(t, stack, onceIn(t, store, charge), 5*time.Minute)
		if left := stack.MemSQS.Messages("orders"); charged != 1 || len(left) > 0 {
			t.Errorf("charged %d times, %d messages left, want once and none", charged, len(left))
		}
	})
}

// withQueue runs f in virtual time, with a queue named orders.
func withQueue(t *testing.T, f func(*testing.T, *localstack.Stack)) {
	inMemory(t)
	synctest.Test(t, func(t *testing.T) {
		stack, err := localstack.Start(t.Context(), func(o *localstack.Options) { o.Queues = []localstack.Queue{{Name: "orders"}} })
		if err != nil {
			t.Fatal(err)
		}
		f(t, stack)
		if err := stack.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// onceIn guards h with records in store, as in production with a store that outlives the process.
func onceIn(t *testing.T, store dedup.Store, h sqsonce.Handler) sqsonce.Handler {
	once, err := dedup.New(store, "billing")
	if err != nil {
		t.Fatal(err)
	}
	return once.Handler(h)
}

func send(t *testing.T, stack *localstack.Stack, body string) {
	if _, err := stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(stack.QueueURL["orders"]), MessageBody: &body}); err != nil {
		t.Error(err)
	}
}

// work runs two workers for d, each with a memory of its own, and stops them.
func work(t *testing.T, stack *localstack.Stack, h sqsonce.Handler, d time.Duration) {
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var wg sync.WaitGroup
	for range 2 {
		w, err := sqsworker.New(stack.SQS, stack.QueueURL["orders"], h)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
