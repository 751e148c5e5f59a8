//go:build aws

package suites

import (
	"cmp"
	"context"
	"crypto/rand"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/storetest"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/internal/ddbtest"
	"github.com/sqsonce/sqsonce/localstack/internal/sqstest"
)

// Set by make aws, which has checked the account.
var (
	cfg    aws.Config
	prefix = os.Getenv("SQSONCE_AWS_PREFIX")
)

func TestMain(m *testing.M) {
	if prefix == "" {
		log.Fatal("SQSONCE_AWS_PREFIX is not set: run make aws")
	}
	var err error
	if cfg, err = config.LoadDefaultConfig(context.Background()); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

func TestSQS(t *testing.T) {
	patience := must.Get(time.ParseDuration(cmp.Or(os.Getenv("SQSONCE_AWS_PATIENCE"), "0s")))(t)
	sqstest.Run(t, sqstest.Backend{New: sqsClient, Prefix: prefix, Patience: patience})
}

func TestDynamoDB(t *testing.T) {
	both := ddbtest.Account{Client: dynamoClient(t), Streams: streamsClient()}
	ddbtest.Run(t, ddbtest.Backend{
		New:      func(*testing.T) ddbtest.Account { return both },
		RealTime: true,
		Prefix:   prefix,
	})
}

func TestStore(t *testing.T) {
	client := dynamoClient(t)
	newStore := func(t *testing.T, table string) dedup.Store {
		return must.Get(dynamostore.New(client, table))(t)
	}
	storetest.Run(t, storetest.Harness{
		New:           func(t *testing.T) dedup.Store { return newStore(t, newTable(t, client)) },
		Misconfigured: func(t *testing.T) dedup.Store { return newStore(t, name("missing")) },
		RealTime:      true,
		Lease:         4 * time.Second,
		Grace:         4 * time.Second,
	})
}

// once makes an SDK client send each request once, as the suites need it. What AWS throttled it has not carried out: that
// alone is sent again.
func once(o *retry.StandardOptions) {
	o.Retryables = []retry.IsErrorRetryable{retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}}
	o.RateLimiter = ratelimit.None
	o.MaxAttempts = 10
}

func sqsClient(t *testing.T) *sqs.Client {
	t.Helper()
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.Retryer = retry.NewStandard(once)
		if o.BaseEndpoint == nil { // cases that send requests of their own need it
			e := must.Get(sqs.NewDefaultEndpointResolverV2().ResolveEndpoint(t.Context(), sqs.EndpointParameters{Region: aws.String(o.Region)}))(t)
			o.BaseEndpoint = aws.String(e.URI.String())
		}
	})
}

func dynamoClient(t *testing.T) *dynamodb.Client {
	t.Helper()
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(once)
		if o.BaseEndpoint == nil {
			e := must.Get(dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(t.Context(), dynamodb.EndpointParameters{Region: aws.String(o.Region)}))(t)
			o.BaseEndpoint = aws.String(e.URI.String())
		}
	})
}

func streamsClient() *dynamodbstreams.Client {
	return dynamodbstreams.NewFromConfig(cfg, func(o *dynamodbstreams.Options) { o.Retryer = retry.NewStandard(once) })
}

// name returns a name for a resource of the run.
func name(what string) string {
	return prefix + what + "-" + strings.ToLower(rand.Text()[:12])
}

func newTable(t *testing.T, client *dynamodb.Client) string {
	t.Helper()
	table := name("records")
	must.Do(t, dynamostore.CreateTable(t.Context(), client, table))
	t.Cleanup(func() {
		// An error is of no use: what is left is deleted at the end of the run.
		_, _ = client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table})
	})
	return table
}
