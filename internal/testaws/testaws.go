// Package testaws is for tests: clients of the services in memory, their queues, functions behind them, and the fields that an error
// names.
package testaws

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
)

// Credentials are those of any user.
var Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
})

// SQS returns a client whose network is transport, for example a memsqs.Server.
func SQS(transport http.RoundTripper, optFns ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: transport}, Credentials: Credentials,
	}, optFns...)
}

// DynamoDB returns a client whose network is transport, for example a memdynamodb.Server.
func DynamoDB(transport http.RoundTripper, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.local"), HTTPClient: &http.Client{Transport: transport}, Credentials: Credentials,
	}, optFns...)
}

// Streams returns a client of DynamoDB's streams that sends each request once.
func Streams(transport http.RoundTripper, optFns ...func(*dynamodbstreams.Options)) *dynamodbstreams.Client {
	return dynamodbstreams.New(dynamodbstreams.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.local"), HTTPClient: &http.Client{Transport: transport},
		Credentials: Credentials, Retryer: aws.NopRetryer{},
	}, optFns...)
}

// Queue creates a queue, a FIFO queue by its name, and returns its URL.
func Queue(t testing.TB, c *sqs.Client, name string, attrs map[string]string) (url string) {
	t.Helper()
	all := map[string]string{}
	maps.Copy(all, attrs)
	if strings.HasSuffix(name, ".fifo") {
		all["FifoQueue"] = "true"
	}
	return *must.Get(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: all}))(t).QueueUrl
}

// Invoke makes what an event source mapping calls of a function. The NewHandler of aws-lambda-go would not do: its Invoke has one
// buffer for all responses, and a mapping calls several at once.
func Invoke(f func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		var e events.SQSEvent
		if err := json.Unmarshal(payload, &e); err != nil {
			return nil, err
		}
		r, err := f(ctx, e)
		if err != nil {
			return nil, err
		}
		return json.Marshal(r)
	}
}

// Fields returns the fields of all OptionErrors in an error.
func Fields(err error) (all []string) {
	switch e := err.(type) {
	case *sqsonce.OptionError:
		return []string{e.Field}
	case interface{ Unwrap() []error }:
		for _, branch := range e.Unwrap() {
			all = append(all, Fields(branch)...)
		}
	case interface{ Unwrap() error }:
		return Fields(e.Unwrap())
	}
	return all
}
