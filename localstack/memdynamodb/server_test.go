package memdynamodb_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// client returns a real SDK client of the server, with one attempt a call so that faults reach the test.
func client(srv *memdynamodb.Server) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		HTTPClient:   &http.Client{Transport: srv},
		BaseEndpoint: aws.String("http://dynamodb.local"),
		Retryer:      aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

// start returns a server with the table "orders", whose key is the string "id", and a client of it.
func start(t testing.TB, optFns ...func(*memdynamodb.Options)) (*memdynamodb.Server, *dynamodb.Client) {
	t.Helper()
	srv := memdynamodb.New(optFns...)
	t.Cleanup(srv.Close)
	c := client(srv)
	createTable(t, c, "orders", "id", "")
	return srv, c
}

func createTable(t testing.TB, c *dynamodb.Client, name, partition, sort string) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName:            &name,
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: &partition, AttributeType: "S"}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: &partition, KeyType: "HASH"}},
	}
	if sort != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddbtypes.AttributeDefinition{AttributeName: &sort, AttributeType: "N"})
		in.KeySchema = append(in.KeySchema, ddbtypes.KeySchemaElement{AttributeName: &sort, KeyType: "RANGE"})
	}
	if _, err := c.CreateTable(t.Context(), in); err != nil {
		t.Fatalf("CreateTable(%s): %v", name, err)
	}
}

type item = map[string]ddbtypes.AttributeValue

func str(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }
func num(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberN{Value: s} }

// send sends a bare request, without the SDK's own checks and cost.
func send(t testing.TB, srv *memdynamodb.Server, op, body string) (status int, header http.Header, answer string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://dynamodb.local/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	r.Header.Set("Authorization", "test")
	resp, err := srv.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}
