package sqsonce_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// An order is published twice to a standard queue, which delivers both messages. The handler runs once.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stack, err := localstack.Start(ctx, func(o *localstack.Options) {
		o.Queues = []localstack.Queue{{Name: "orders"}}
		o.Tables = []string{"dedup"}
	})
	if err != nil {
		log.Fatal(err)
	}
	defer stack.Close(context.Background())
	queueURL := stack.QueueURL["orders"]

	p, err := fifo.NewPublisher(stack.SQS, queueURL, "orders")
	if err != nil {
		log.Fatal(err)
	}
	for range 2 { // a producer that retries
		if _, err := p.Publish(ctx, fifo.Event{ID: "ord-42/v3", Group: "ord-42", Body: `{"id":"ord-42","cents":1200}`}); err != nil {
			log.Fatal(err)
		}
	}

	store, err := dynamostore.New(stack.DynamoDB, "dedup")
	if err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	handler := once.Handler(sqsonce.JSON(func(_ context.Context, o Order) error {
		fmt.Println("charged", o.ID, o.Cents)
		return nil
	}))

	ctx, stop := context.WithCancel(ctx)
	var handled atomic.Int32
	stopAfterTwo := func(ctx context.Context, m *sqsonce.Message) error { // middleware
		err := handler(ctx, m)
		if err == nil && handled.Add(1) == 2 {
			stop()
		}
		return err
	}
	w, err := sqsworker.New(stack.SQS, queueURL, stopAfterTwo, func(o *sqsworker.Options) { o.WaitTime = time.Second })
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("messages:", w.Stats().Done, "first:", once.Stats().First)
	// Output:
	// charged ord-42 1200
	// messages: 2 first: 1
}

// Order is the JSON body of the messages in these examples.
type Order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func chargeCard(context.Context, Order) error { return nil }

var (
	cfg      aws.Config // of config.LoadDefaultConfig
	queueURL = os.Getenv("QUEUE_URL")
	client   = sqs.NewFromConfig(cfg)
)

// The record of each event is in DynamoDB.
func newHandler() (sqsonce.Handler, error) {
	store, err := dynamostore.New(dynamodb.NewFromConfig(cfg), os.Getenv("DEDUP_TABLE"))
	if err != nil {
		return nil, err
	}
	once, err := dedup.New(store, "billing") // consumer: part of every key
	if err != nil {
		return nil, err
	}
	return once.Handler(sqsonce.JSON(chargeCard)), nil // func chargeCard(context.Context, Order) error
}

// The handler behind an SQS event source mapping.
func Example_lambda() {
	main := func() {
		handler, err := newHandler()
		if err != nil {
			log.Fatal(err)
		}
		lambda.Start(handler) // github.com/sqsonce/sqsonce/lambda; never returns
	}
	_ = main
}

// The same handler in a process of its own. SIGTERM stops it: no message stays hidden.
func Example_worker() {
	run := func(handler sqsonce.Handler) error {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		client := sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.HTTPClient = sqsworker.HTTPClient(30) })
		w, err := sqsworker.New(client, queueURL, handler)
		if err != nil {
			return err
		}
		return w.Run(ctx) // blocks; nil after a clean stop
	}
	_ = run
}

// The publisher gives a message its MessageDeduplicationId from the event's own ID.
func Example_publisher() {
	publish := func(ctx context.Context, body string) error {
		p, err := fifo.NewPublisher(client, queueURL, "orders") // the namespace, sent as event-source
		if err != nil {
			return err
		}
		_, err = p.Publish(ctx, fifo.Event{ID: "ord-42/v3", Group: "ord-42", Body: body})
		return err
	}
	_ = publish
}

// The inbox commits the handler's writes together with the event's record, or none of them.
func Example_inbox() {
	newLedger := func(store *dynamostore.Store) (sqsonce.Handler, error) {
		inbox, err := dynamostore.NewInbox(store, "ledger")
		if err != nil {
			return nil, err
		}
		return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
			o, err := sqsonce.Decode[Order](m)
			if err != nil {
				return err
			}
			tx.Update(&ddbtypes.Update{ // committed with the event's record, or not at all
				TableName:                 aws.String("ledger"),
				Key:                       map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: o.ID}},
				UpdateExpression:          aws.String("ADD cents :c"),
				ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":c": &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(o.Cents)}},
			})
			return nil
		}), nil
	}
	_ = newLedger
}

// The consumer can be paused, gets its events through SNS, and runs each once.
func ExampleChain_consumer() {
	store := memstore.New()
	c, err := control.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	chargeCard := func(_ context.Context, o Order) error {
		fmt.Println("charge", o.Cents)
		return nil
	}
	handler := sqsonce.Chain(sqsonce.JSON(chargeCard), c.Handler, sqsonce.OpenEnvelope, once.Handler) // c of package control: outermost
	for range 2 {
		fmt.Println(handler(context.Background(), &sqsonce.Message{
			ID: "1", QueueARN: "arn:aws:sqs:eu-west-1:111122223333:orders", Body: `{"cents":1200}`,
		}))
	}
	// Output:
	// charge 1200
	// <nil>
	// <nil>
}

// Messages that SNS or EventBridge sends to the queue: the handler gets what is in the envelope.
func ExampleOpenEnvelope() {
	h := sqsonce.OpenEnvelope(sqsonce.JSON(func(ctx context.Context, o Order) error {
		m, _ := sqsonce.FromContext(ctx)
		key, source, _ := m.Key()
		fmt.Println(o.ID, source, key)
		return nil
	}))
	notification := `{
		"Type": "Notification",
		"MessageId": "63a3f6b6-d533-4a47-aef9-fcf5cf758c76",
		"TopicArn": "arn:aws:sns:eu-west-1:123456789012:orders",
		"Message": "{\"id\":\"ord-42\"}",
		"Timestamp": "2026-11-23T06:00:00.000Z"
	}`
	if err := h(context.Background(), &sqsonce.Message{Body: notification}); err != nil {
		fmt.Println(err)
	}
	// Output: ord-42 sns sns-message|arn:aws:sns:eu-west-1:123456789012:orders|63a3f6b6-d533-4a47-aef9-fcf5cf758c76
}

// The card service is down. The host calls ping, and runs no handler until ping returns nil. If ping works although the charge has
// failed, only this order waits.
func ExampleUnavailableUntil() {
	charge := func(context.Context, Order) error { return errors.New("card service: connection refused") }
	ping := func(context.Context) error { return nil }

	h := sqsonce.JSON(func(ctx context.Context, o Order) error {
		if err := charge(ctx, o); err != nil {
			return sqsonce.UnavailableUntil(err, ping)
		}
		return nil
	})
	err := h(context.Background(), &sqsonce.Message{Body: `{"id":"ord-42","cents":1250}`})
	fmt.Println(sqsonce.OutcomeOf(err).Kind, "-", err)
	// Output: unavailable - sqsonce: unavailable: card service: connection refused
}
