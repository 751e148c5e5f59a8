package esm_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// A function behind a mapping on the stream of a table in memory.
func ExampleRunStream() {
	srv := memdynamodb.New()
	defer srv.Close()
	db, streams := dynamoClients(srv)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	table, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "ord-42"},
	}})
	if err != nil {
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
		cancel() // one batch is enough
		return nil, nil
	}
	err = esm.RunStream(ctx, streams, esm.StreamConfig{
		StreamARN: aws.ToString(table.TableDescription.LatestStreamArn),
		Filters:   []string{`{"eventName": ["INSERT"]}`},
	}, invoke)
	fmt.Println("stopped:", err)
	// Output:
	// INSERT ord-42
	// stopped: <nil>
}
