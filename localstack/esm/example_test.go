package esm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// A function behind a mapping, on a queue in memory. In a testing/synctest bubble the same takes no time.
func Example() {
	srv := memsqs.New()
	defer srv.Close()
	client := testaws.SQS(srv)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("order 1")}); err != nil {
		fmt.Println(err)
		return
	}

	handler := func(_ context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		for _, r := range e.Records {
			fmt.Println(r.Body)
		}
		cancel() // one event is enough
		return events.SQSEventResponse{}, nil
	}
	invoke := func(ctx context.Context, event []byte) ([]byte, error) {
		var e events.SQSEvent
		if err := json.Unmarshal(event, &e); err != nil {
			return nil, err
		}
		response, err := handler(ctx, e)
		if err != nil {
			return nil, err
		}
		return json.Marshal(response)
	}
	err = esm.Run(ctx, client, esm.Config{
		QueueURL:                aws.ToString(queue.QueueUrl),
		FunctionTimeout:         10 * time.Second,
		ReportBatchItemFailures: true,
		Wait:                    time.Second,
	}, invoke)
	fmt.Println("stopped:", err, "messages:", len(srv.Messages("orders")))
	// Output:
	// order 1
	// stopped: <nil> messages: 0
}

// A function behind a mapping on the stream of a table in memory.
func ExampleRunStream() {
	srv := memdynamodb.New()
	defer srv.Close()
	db, streams := dynamoClients(srv)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	table, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("orders"),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}},
		StreamSpecification:  &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: "KEYS_ONLY"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	item := map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "order 1"}}
	if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item}); err != nil {
		fmt.Println(err)
		return
	}

	invoke := func(_ context.Context, event []byte) ([]byte, error) {
		var e events.DynamoDBEvent
		if err := json.Unmarshal(event, &e); err != nil {
			return nil, err
		}
		for _, r := range e.Records {
			fmt.Println(r.EventName, r.Change.Keys["id"].String())
		}
		cancel() // one event is enough
		return json.Marshal(events.DynamoDBEventResponse{})
	}
	err = esm.RunStream(ctx, streams, esm.StreamConfig{
		StreamARN:               aws.ToString(table.TableDescription.LatestStreamArn),
		Filters:                 []string{`{"eventName":["INSERT"]}`},
		ReportBatchItemFailures: true,
	}, invoke)
	fmt.Println("stopped:", err)
	// Output:
	// INSERT order 1
	// stopped: <nil>
}
