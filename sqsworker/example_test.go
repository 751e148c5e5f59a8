package sqsworker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// The main function of a worker on ECS or Kubernetes: SIGTERM starts the stop, a second one cancels the handlers at once.
func Example() {
	var cfg aws.Config // from config.LoadDefaultConfig
	client := sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.HTTPClient = sqsworker.HTTPClient(200) })

	type order struct{ ID string }
	charge := func(ctx context.Context, o order) error { return nil }

	w, err := sqsworker.New(client, os.Getenv("QUEUE_URL"), sqsonce.JSON(charge), func(o *sqsworker.Options) {
		o.Concurrency = 50
		o.MaxInFlight = 200
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // the context of Run
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		cancel()
		<-signals
		w.Shutdown()
	}()
	go func() { log.Print(http.ListenAndServe(":8080", w.Health())) }()
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// A worker against the in-memory SQS of this module, as in a test.
func ExampleNew() {
	srv := memsqs.New()
	defer srv.Close()
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: srv},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String(`{"ID":"ord-42"}`)})
	if err != nil {
		log.Fatal(err)
	}

	handler := sqsonce.JSON(func(ctx context.Context, o struct{ ID string }) error {
		fmt.Println("charged", o.ID)
		cancel() // stops the worker: one message is enough here
		return nil
	})
	w, err := sqsworker.New(client, *queue.QueueUrl, handler, func(o *sqsworker.Options) { o.WaitTime = time.Second })
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("done:", w.Stats().Done, "left:", len(srv.Messages("orders")))
	// Output:
	// charged ord-42
	// done: 1 left: 0
}

// bank stands for what a handler calls.
type bank struct{}

func (bank) isDown() bool { return false }

// exampleStack returns an SQS in memory with queues and a message in each.
func exampleStack(bodies map[string][]string) *localstack.Stack {
	ctx := context.Background()
	stack, err := localstack.Start(ctx, func(o *localstack.Options) {
		for name := range bodies {
			o.Queues = append(o.Queues, localstack.Queue{Name: name})
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	for name, queue := range bodies {
		for _, body := range queue {
			_, err := stack.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(stack.QueueURL[name]), MessageBody: &body})
			if err != nil {
				log.Fatal(err)
			}
		}
	}
	return stack
}

// What a handler returns decides about its message.
func Example_outcomes() {
	stack := exampleStack(map[string][]string{"orders": {`{"Cents":500,"Currency":"EUR"}`, `{"Cents":0}`, `{"Cents":700,"Currency":"XXX"}`}})
	defer stack.Close(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	var handled atomic.Int32
	var bank bank
	handler := sqsonce.JSON(func(ctx context.Context, o struct {
		Cancelled bool
		Cents     int
		Currency  string
		Due       time.Time
	}) error {
		if handled.Add(1) == 3 {
			stop()
		}
		switch {
		case o.Cancelled:
			return sqsonce.Skip("order was cancelled") // done without a charge: never run again
		case o.Cents <= 0:
			return sqsonce.Reject(errors.New("nothing to charge")) // to the dead-letter queue now, with this reason
		case o.Currency != "EUR":
			return sqsonce.RetryAfter(10*time.Minute, errors.New("no rates yet")) // again in ten minutes
		case o.Due.After(time.Now()):
			return sqsonce.Postpone(time.Until(o.Due), nil) // held until then, without counting an attempt
		case bank.isDown():
			return sqsonce.Unavailable(errors.New("bank does not answer")) // held and run again, without counting an attempt
		default:
			return nil // done: the message is deleted
		}
	})
	quiet := slog.New(slog.DiscardHandler)
	w, err := sqsworker.New(stack.SQS, stack.QueueURL["orders"], handler, func(o *sqsworker.Options) { o.WaitTime, o.Logger = time.Second, quiet })
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	s := w.Stats()
	fmt.Println("done:", s.Done, "rejected:", s.Rejected, "retried:", s.Retried)
	// Output: done: 1 rejected: 1 retried: 1
}

// The workers of two queues stop together.
func ExampleRunAll() {
	stack := exampleStack(map[string][]string{"orders": {"order 1"}, "refunds": {"refund 1"}})
	defer stack.Close(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	var handled atomic.Int32
	handler := func(context.Context, *sqsonce.Message) error {
		if handled.Add(1) == 2 {
			stop()
		}
		return nil
	}
	options := func(o *sqsworker.Options) { o.WaitTime, o.Logger = time.Second, slog.New(slog.DiscardHandler) }
	orders, err := sqsworker.New(stack.SQS, stack.QueueURL["orders"], handler, options)
	if err != nil {
		log.Fatal(err)
	}
	refunds, err := sqsworker.New(stack.SQS, stack.QueueURL["refunds"], handler, options)
	if err != nil {
		log.Fatal(err)
	}
	err = sqsworker.RunAll(ctx, orders, refunds)
	fmt.Println("stopped:", err, "done:", orders.Stats().Done+refunds.Stats().Done)
	// Output: stopped: <nil> done: 2
}

// A loop of one's own keeps its receives and gets dedup: MessageOf makes the message, sqsonce.OutcomeOf says what to do with it.
// Such a loop does not extend the visibility timeout and does not cancel a handler: a handler must end within it.
func ExampleMessageOf() {
	loop := func(ctx context.Context, client *sqs.Client, queueURL, queueARN string, handler sqsonce.Handler) error {
		for ctx.Err() == nil {
			out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
				QueueUrl: &queueURL, MaxNumberOfMessages: 10, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
				MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
			})
			if err != nil {
				return err
			}
			for _, received := range out.Messages {
				outcome := sqsonce.OutcomeOf(handler(ctx, sqsworker.MessageOf(received, queueARN)))
				hide := func(d time.Duration) error {
					_, err := client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
						QueueUrl: &queueURL, ReceiptHandle: received.ReceiptHandle, VisibilityTimeout: int32(max(1, math.Ceil(d.Seconds()))),
					})
					return err
				}
				switch {
				case outcome.Kind == sqsonce.OutcomeDone:
					_, err = client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queueURL, ReceiptHandle: received.ReceiptHandle})
				case outcome.Kind == sqsonce.OutcomePostponed:
					err = hide(outcome.After)
				case outcome.Retry && outcome.Kind != sqsonce.OutcomeLeaseLost:
					err = hide(outcome.After)
				}
				if err != nil { // of what was not deleted nothing is lost: it is delivered again
					log.Print(err)
				}
			}
		}
		return ctx.Err()
	}
	_ = loop
}
