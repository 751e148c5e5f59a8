package dynamooutbox_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

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
	c := newClients(ctx)                                            // of DynamoDB and SQS
	box, err := dynamooutbox.New(c.ddb, "outbox", "orders", "shop") // a table, the outbox in it, the publisher's namespace
	if err != nil {
		log.Fatal(err)
	}
	relay, err := outbox.NewRelay(box, c.publisher("shop")) // a fifo.Publisher
	if err != nil {
		log.Fatal(err)
	}

	pay := func(order string, version int64) error {
		event, err := box.Put(fifo.Event{ID: fmt.Sprintf("%s/v%d", order, version), Group: order, Body: `{"paid":true}`}, version)
		if err != nil {
			return err
		}
		_, err = c.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
			{Update: nextVersion("orders", order, version)}, // SET version = 2 IF version = 1, in your table
			{Put: event},
		}})
		if err != nil {
			return err
		}
		if err := relay.Drain(ctx, order); err != nil { // or this process dies here: a sweep publishes the event
			log.Print(err)
		}
		return nil // the order is paid
	}

	for version := range int64(3) {
		if err := pay("ord-42", version+1); err != nil {
			log.Fatal(err)
		}
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
	if err := dynamostore.CreateTable(ctx, c.ddb, "dedup"); err != nil {
		log.Fatal(err)
	}
	store, err := dynamostore.New(c.ddb, "dedup")
	if err != nil {
		log.Fatal(err)
	}
	inbox, err := dynamostore.NewInbox(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	box, err := dynamooutbox.New(c.ddb, "outbox", "charges", "billing")
	if err != nil {
		log.Fatal(err)
	}

	handler := inbox.Handler(func(_ context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
		const version = 1 // read from the charge, in a program that charges more than once
		event, err := box.Put(fifo.Event{ID: m.Body + "/charged", Group: m.Body, Body: `{"cents":4200}`}, version)
		if err != nil {
			return err
		}
		tx.Update(nextVersion("charges", m.Body, version))
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
		if err := handler(ctx, message); err != nil {
			log.Fatal(err)
		}
	}

	// Elsewhere, on a schedule. Settle leaves young events to their doorbells, which there are none of here.
	relay, err := outbox.NewRelay(box, c.publisher("billing"), func(o *outbox.Options) { o.Settle = -1 })
	if err != nil {
		log.Fatal(err)
	}
	backlog, err := relay.Sweep(ctx)
	if err != nil {
		log.Fatal(err)
	}
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
	box, err := dynamooutbox.New(c.ddb, os.Getenv("OUTBOX_TABLE"), "orders", "shop")
	if err != nil {
		log.Fatal(err)
	}
	relay, err := outbox.NewRelay(box, c.publisher("shop"))
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(box.Lambda(relay))
}

// nextVersion is the write of an aggregate under the condition that its version is the one before.
func nextVersion(table, id string, version int64) *ddbtypes.Update {
	number := func(n int64) ddbtypes.AttributeValue {
		return &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	u := &ddbtypes.Update{
		TableName:                 aws.String(table),
		Key:                       map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: id}},
		UpdateExpression:          aws.String("SET version = :new"),
		ConditionExpression:       aws.String("version = :old"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":new": number(version), ":old": number(version - 1)},
	}
	if version == 1 {
		u.ConditionExpression = aws.String("attribute_not_exists(id)")
		delete(u.ExpressionAttributeValues, ":old")
	}
	return u
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
	if err := dynamooutbox.CreateTable(ctx, c.ddb, "outbox"); err != nil {
		log.Fatal(err)
	}
	for _, table := range []string{"orders", "charges"} {
		_, err := c.ddb.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: aws.String(table), BillingMode: ddbtypes.BillingModePayPerRequest,
			AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
			KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	q, err := c.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("events.fifo"), Attributes: map[string]string{"FifoQueue": "true"}})
	if err != nil {
		log.Fatal(err)
	}
	c.url = *q.QueueUrl
	return c
}

func (c *clients) publisher(namespace string) *fifo.Publisher {
	p, err := fifo.NewPublisher(c.sqs, c.url, namespace)
	if err != nil {
		log.Fatal(err)
	}
	return p
}
