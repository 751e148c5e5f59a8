package dynamooutbox_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// A producer: the order and its event are one transaction, and the process that has committed rings the doorbell itself.
func Example() {
	ctx := context.Background()
	c, box := newShop(ctx)
	relay := must(outbox.NewRelay(box, c.publisher("shop")))

	pay := func(order string, version int64) error {
		event, err := box.Put(fifo.Event{ID: fmt.Sprintf("%s/v%d", order, version), Group: order, Body: `{"paid":true}`}, version)
		if err != nil {
			return err
		}
		_, err = c.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
			{Update: setNumber("orders", order, "version", version-1, version)},
			{Put: event},
		}})
		if err != nil {
			return err
		}
		return relay.Drain(ctx, order) // if this process dies here, a sweep publishes the event
	}

	for version := range int64(3) {
		check(pay("ord-42", version+1))
	}
	for _, m := range c.queue.Messages(c.url) {
		fmt.Println(m.Group, m.DedupID, m.Body)
	}
	fmt.Println("published:", relay.Stats().Published)
	// Output:
	// ord-42 shop|ord-42/v1 {"paid":true}
	// ord-42 shop|ord-42/v2 {"paid":true}
	// ord-42 shop|ord-42/v3 {"paid":true}
	// published: 3
}

// A consumer that emits: the record of the message, the charge and the event that says so are one transaction. However often the
// message comes, there is one charge and one event.
func ExampleOutbox_Put() {
	ctx := context.Background()
	c := newClients(ctx)
	check(dynamostore.CreateTable(ctx, c.ddb, "dedup"))
	store := must(dynamostore.New(c.ddb, "dedup"))
	inbox := must(dynamostore.NewInbox(store, "billing"))
	box := must(dynamooutbox.New(c.ddb, "outbox", "charges", "billing"))

	handler := inbox.Handler(func(_ context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
		const version = 1 // read from the charge, in a program that charges more than once
		event, err := box.Put(fifo.Event{ID: m.Body + "/charged", Group: m.Body, Body: `{"cents":4200}`}, version)
		if err != nil {
			return err
		}
		tx.Update(setNumber("charges", m.Body, "version", version-1, version))
		tx.Put(event)
		return nil
	})

	message := &sqsonce.Message{
		ID: "6f2c", Body: "ord-42", ReceiveCount: 1,
		Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventSource: {Type: "String", String: "shop"},
			sqsonce.AttrEventID:     {Type: "String", String: "ord-42/v1"},
		},
	}
	for range 3 {
		check(handler(ctx, message))
	}

	// Elsewhere, on a schedule. Settle leaves young events to their doorbells, which there are none of here.
	relay := must(outbox.NewRelay(box, c.publisher("billing"), func(o *outbox.Options) { o.Settle = -1 }))
	backlog := must(relay.Sweep(ctx))
	fmt.Println("groups with events:", backlog.Groups)
	for _, m := range c.queue.Messages(c.url) {
		fmt.Println(m.Group, m.DedupID, m.Body)
	}
	// Output:
	// groups with events: 1
	// ord-42 billing|ord-42/charged {"cents":4200}
}

// The main function of a relay in Lambda. The table's stream invokes it, with ReportBatchItemFailures and a filter on INSERT, and
// a schedule does once a minute.
func ExampleOutbox_Lambda() {
	c := newClients(context.Background()) // outside the handler: they are used by all invocations
	box := must(dynamooutbox.New(c.ddb, os.Getenv("OUTBOX_TABLE"), "orders", "shop"))
	relay := must(outbox.NewRelay(box, c.publisher("shop")))
	lambda.Start(box.Lambda(relay))
}

// clients stand for those that are made from a configuration: here they are AWS in memory.
type clients struct {
	ddb   *dynamodb.Client
	sqs   *sqs.Client
	queue *memsqs.Server
	url   string
}

func newClients(ctx context.Context) *clients {
	cfg := aws.Config{
		Region: "eu-west-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	}
	c := &clients{queue: memsqs.New()}
	c.ddb = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.BaseEndpoint, o.HTTPClient = aws.String("http://dynamodb.local"), &http.Client{Transport: memdynamodb.New()}
	})
	c.sqs = sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.BaseEndpoint, o.HTTPClient = aws.String("http://sqs.local"), &http.Client{Transport: c.queue}
	})
	check(dynamooutbox.CreateTable(ctx, c.ddb, "outbox"))
	for _, table := range []string{"orders", "charges"} {
		must(c.ddb.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: aws.String(table), BillingMode: ddbtypes.BillingModePayPerRequest,
			AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
			KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
		}))
	}
	q := must(c.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("events.fifo"), Attributes: map[string]string{"FifoQueue": "true"}}))
	c.url = *q.QueueUrl
	return c
}

func (c *clients) publisher(namespace string) *fifo.Publisher {
	p := must(fifo.NewPublisher(c.sqs, c.url, namespace))
	return p
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
