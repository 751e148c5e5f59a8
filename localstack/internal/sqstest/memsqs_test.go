package sqstest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/internal/sqstest"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func TestMemSQS(t *testing.T) {
	t.Parallel()
	sqstest.Run(t, inMemory())
}

// What AWS was seen to do where its text has an error passes too: the cases ask for no more than the text.
func TestMemSQSWithLooseHandles(t *testing.T) {
	t.Parallel()
	sqstest.Run(t, inMemory(func(o *memsqs.Options) { o.LooseHandles = true }))
}

// A standard queue that reorders passes: the cases ask for no order that AWS does not promise.
func TestMemSQSReordering(t *testing.T) {
	t.Parallel()
	sqstest.Run(t, inMemory(func(o *memsqs.Options) { o.Reorder = 5 }))
}

func inMemory(optFns ...func(*memsqs.Options)) sqstest.Backend {
	return sqstest.Backend{
		Virtual: true,
		New: func(t *testing.T) *sqs.Client {
			srv := memsqs.New(optFns...)
			t.Cleanup(srv.Close)
			return newClient("http://sqs.memory", srv)
		},
	}
}

func newClient(endpoint string, transport http.RoundTripper) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: &http.Client{Transport: transport}, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}
