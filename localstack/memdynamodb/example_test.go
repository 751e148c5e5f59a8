package memdynamodb_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// The reply to the first attempt of a real client is lost. Its second attempt finds the item of the first.
func Example() {
	srv := memdynamodb.New(func(o *memdynamodb.Options) {
		o.Faults = fault.Plan{Rules: []fault.Rule{{Op: "PutItem", Nth: 1, Do: fault.LoseReply}}}
	})
	defer srv.Close()
	db := dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		HTTPClient:   &http.Client{Transport: srv},
		BaseEndpoint: aws.String("http://dynamodb.local"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	ctx := context.Background()
	if _, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("dedup"),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}},
	}); err != nil {
		fmt.Println(err)
		return
	}
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           aws.String("dedup"),
		Item:                map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "order-1"}},
		ConditionExpression: aws.String("attribute_not_exists(id)"),
	})
	_, failed := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err)
	fmt.Println("condition failed:", failed)
	fmt.Printf("items: %s\n", srv.Items("dedup"))
	// Output:
	// condition failed: true
	// items: [{"id":{"S":"order-1"}}]
}
