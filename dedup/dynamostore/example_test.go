package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// newClient stands for dynamodb.NewFromConfig(cfg): here it is DynamoDB in memory.
func newClient() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String("http://dynamodb.local"),
		HTTPClient:   &http.Client{Transport: memdynamodb.New()},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
}

var message = &sqsonce.Message{
	ID:           "6f2c",
	Body:         `{"order":42}`,
	ReceiveCount: 1,
	Attributes: map[string]sqsonce.Attribute{
		sqsonce.AttrEventSource: {Type: "String", String: "orders"},
		sqsonce.AttrEventID:     {Type: "String", String: "order-42"},
	},
}

// A handler that charges a card runs once per event, however often the message comes.
func Example() {
	ctx := context.Background()
	client := newClient()
	if err := dynamostore.CreateTable(ctx, client, "dedup"); err != nil {
		log.Fatal(err)
	}
	store, err := dynamostore.New(client, "dedup")
	if err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	handler := once.Handler(func(context.Context, *sqsonce.Message) error {
		fmt.Println("charged")
		return nil
	})
	fmt.Println(handler(ctx, message))
	fmt.Println(handler(ctx, message))
	// Output:
	// charged
	// <nil>
	// <nil>
}

// The ledger's balance and the event's record change together or not at all.
func ExampleInbox_Handler() {
	ctx := context.Background()
	client := newClient()
	createLedger(ctx, client)
	if err := dynamostore.CreateTable(ctx, client, "dedup"); err != nil {
		log.Fatal(err)
	}
	store, err := dynamostore.New(client, "dedup")
	if err != nil {
		log.Fatal(err)
	}
	inbox, err := dynamostore.NewInbox(store, "ledger")
	if err != nil {
		log.Fatal(err)
	}
	book := inbox.Handler(func(_ context.Context, _ *sqsonce.Message, tx *dynamostore.Tx) error {
		tx.Update(&ddbtypes.Update{
			TableName:           aws.String("ledger"),
			Key:                 map[string]ddbtypes.AttributeValue{"account": &ddbtypes.AttributeValueMemberS{Value: "alice"}},
			UpdateExpression:    aws.String("ADD balance :amount"),
			ConditionExpression: aws.String("attribute_not_exists(closed)"),
			ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
				":amount": &ddbtypes.AttributeValueMemberN{Value: "10"},
			},
		})
		return nil
	})
	// A condition that will never be met is for the dead-letter queue.
	handler := func(ctx context.Context, m *sqsonce.Message) error {
		err := book(ctx, m)
		if _, closed := errors.AsType[*dynamostore.ConditionError](err); closed {
			return sqsonce.Reject(err)
		}
		return err
	}
	for range 3 {
		if err := handler(ctx, message); err != nil {
			log.Fatal(err)
		}
	}
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("ledger"),
		Key:       map[string]ddbtypes.AttributeValue{"account": &ddbtypes.AttributeValueMemberS{Value: "alice"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("balance:", out.Item["balance"].(*ddbtypes.AttributeValueMemberN).Value)
	// Output: balance: 10
}

// What an operator sees of an event, and how to let it run again.
func ExampleStore_Inspect() {
	ctx := context.Background()
	client := newClient()
	if err := dynamostore.CreateTable(ctx, client, "dedup"); err != nil {
		log.Fatal(err)
	}
	store, err := dynamostore.New(client, "dedup")
	if err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	_ = once.Handler(func(context.Context, *sqsonce.Message) error { return errors.New("card declined") })(ctx, message)

	const key = "billing#orders|order-42"
	record, err := store.Inspect(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("completed: %t, receive count: %d, error: %s\n", record.Completed, record.ReceiveCount, record.LastError)
	fmt.Println("deleted:", store.Delete(ctx, key))
	// Output:
	// completed: false, receive count: 1, error: card declined
	// deleted: <nil>
}

func ExampleStore_Check() {
	store, err := dynamostore.New(newClient(), "dedup")
	if err != nil {
		log.Fatal(err)
	}
	err = store.Check(context.Background())
	fmt.Println(errors.Is(err, dynamostore.ErrNoTable))
	// Output: true
}

func createLedger(ctx context.Context, client *dynamodb.Client) {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("ledger"),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("account"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("account"), KeyType: ddbtypes.KeyTypeHash}},
	})
	if err != nil {
		log.Fatal(err)
	}
}
