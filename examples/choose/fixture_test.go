package choose

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

const (
	region   = "us-east-1"
	queueARN = "arn:aws:sqs:us-east-1:000000000000:orders"
	table    = "dedup"
)

var credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
})

// clock is the time of the in-memory services and of the stores on them. It starts with the host's: dedup compares the end of
// a lease with time.Now, and a store whose clock is behind grants leases that are over.
type clock struct{ time time.Time }

func newClock() *clock { return &clock{time.Now()} }

func (c *clock) now() time.Time { return c.time }

func (c *clock) pass(d time.Duration) { c.time = c.time.Add(d) }

func newSQS(srv *memsqs.Server) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: region, BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: srv}, Credentials: credentials,
	})
}

func createQueue(client *sqs.Client, name string, attrs map[string]string) *string {
	out, err := client.CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attrs})
	if err != nil {
		log.Fatal(err)
	}
	return out.QueueUrl
}

func newDynamoDB(srv *memdynamodb.Server) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: region, BaseEndpoint: aws.String("http://dynamodb.local"), HTTPClient: &http.Client{Transport: srv}, Credentials: credentials,
	})
}

// newStore is a process with its own client. The first one creates the table.
func newStore(srv *memdynamodb.Server) *dynamostore.Store {
	client := newDynamoDB(srv)
	if err := dynamostore.CreateTable(context.Background(), client, table); err != nil {
		log.Fatal(err)
	}
	store, err := dynamostore.New(client, table)
	if err != nil {
		log.Fatal(err)
	}
	return store
}

// event is the message of an event; each call is another delivery of it.
func event(id string) *sqsonce.Message {
	return &sqsonce.Message{
		ID: fmt.Sprint("message of ", id), Body: id, QueueARN: queueARN, ReceiveCount: 1,
		Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventSource: {Type: "String", String: "orders"},
			sqsonce.AttrEventID:     {Type: "String", String: id},
		},
	}
}
