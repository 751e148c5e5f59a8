//go:build aws

package suites

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/storetest"
	"github.com/sqsonce/sqsonce/localstack/internal/ddbtest"
	"github.com/sqsonce/sqsonce/localstack/internal/realaws/account"
	"github.com/sqsonce/sqsonce/localstack/internal/sqstest"
)

// opened is the account of the run. The tests cannot start without one whose number was checked.
var opened *account.Account

func TestMain(m *testing.M) {
	prefix := os.Getenv(account.PrefixVariable)
	if prefix == "" {
		log.Fatalf("%s is not set: run make aws", account.PrefixVariable)
	}
	go func() {
		// make aws holds the other end: whatever ends it ends the tests, which would create more.
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(3)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if opened, err = account.Open(ctx, prefix); err != nil {
		log.Fatal(err)
	}
	stop()
	code := m.Run()
	for service, n := range opened.Guard.Requests() {
		fmt.Printf("%s%s %d\n", account.RequestsLine, service, n)
	}
	os.Exit(code)
}

func TestSQS(t *testing.T) {
	patience, err := time.ParseDuration(cmp.Or(os.Getenv(account.PatienceVariable), "0s"))
	if err != nil {
		t.Fatal(err)
	}
	sqstest.Run(t, sqstest.Backend{New: sqsClient, Prefix: opened.Guard.Prefix, Patience: patience})
}

func TestDynamoDB(t *testing.T) {
	both := ddbtest.Account{Client: dynamoClient(t), Streams: streamsClient()}
	ddbtest.Run(t, ddbtest.Backend{
		New:      func(*testing.T) ddbtest.Account { return both },
		RealTime: true,
		Prefix:   opened.Guard.Prefix,
	})
}

func TestStore(t *testing.T) {
	client := dynamoClient(t)
	newStore := func(t *testing.T, table string) dedup.Store {
		s, err := dynamostore.New(client, table)
		if err != nil {
			t.Fatal(err)
		}
		return s
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
	cfg := opened.Config.Copy()
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.Retryer = retry.NewStandard(once)
		o.APIOptions = append(o.APIOptions, tagged)
		if o.BaseEndpoint == nil { // cases that send requests of their own need it
			e, err := sqs.NewDefaultEndpointResolverV2().ResolveEndpoint(t.Context(), sqs.EndpointParameters{Region: aws.String(o.Region)})
			if err != nil {
				t.Fatal(err)
			}
			o.BaseEndpoint = aws.String(e.URI.String())
		}
	})
}

func dynamoClient(t *testing.T) *dynamodb.Client {
	t.Helper()
	return dynamodb.NewFromConfig(opened.Config, func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(once)
		o.APIOptions = append(o.APIOptions, tagged)
		if o.BaseEndpoint == nil {
			e, err := dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(t.Context(), dynamodb.EndpointParameters{Region: aws.String(o.Region)})
			if err != nil {
				t.Fatal(err)
			}
			o.BaseEndpoint = aws.String(e.URI.String())
		}
	})
}

func streamsClient() *dynamodbstreams.Client {
	return dynamodbstreams.NewFromConfig(opened.Config, func(o *dynamodbstreams.Options) { o.Retryer = retry.NewStandard(once) })
}

// tagged puts the run's tag on each queue and table that a client creates.
func tagged(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Tag", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		switch create := in.Parameters.(type) {
		case *sqs.CreateQueueInput:
			create.Tags = map[string]string{account.TagKey: opened.Guard.Prefix}
		case *dynamodb.CreateTableInput:
			create.Tags = []ddbtypes.Tag{{Key: aws.String(account.TagKey), Value: aws.String(opened.Guard.Prefix)}}
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

// name returns a name for a resource of the run.
func name(what string) string {
	return opened.Guard.Prefix + what + "-" + strings.ToLower(rand.Text()[:12])
}

func newTable(t *testing.T, client *dynamodb.Client) string {
	t.Helper()
	table := name("records")
	if err := dynamostore.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// An error is of no use: what is left is deleted at the end of the run.
		_, _ = client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table})
	})
	return table
}
