//go:build unix

package sqsworker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/proof/process"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// asChild is the environment variable that makes the test binary a worker's process. Its value is a config.
const asChild = "SQSWORKER_TEST_CHILD"

func TestMain(m *testing.M) {
	text := os.Getenv(asChild)
	if text == "" {
		testserver.Main(m)
		return
	}
	if err := child(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// config is the configuration of a child.
type config struct {
	SQS, DynamoDB string // endpoints
	Queue         string // URL
	Records       string // tables
	Ledger        string
	Notes         string // file
	Take          time.Duration
	Visibility    time.Duration
	Concurrency   int
}

// child is the main function of a worker whose handler adds one to its event's item in the ledger, in the transaction
// that completes the event's record.
func child(text string) error {
	process.EndWithParent()
	var c config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	notes, err := os.OpenFile(c.Notes, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	note := func(what, body string) {
		// A line is one write: it does not stay there in part, whenever the process dies.
		if _, err := fmt.Fprintf(notes, "%s %s %d\n", what, body, os.Getpid()); err != nil {
			panic(err)
		}
	}
	store, err := dynamostore.New(dynamoClient(c.DynamoDB), c.Records)
	if err != nil {
		return err
	}
	inbox, err := dynamostore.NewInbox(store, "orders", func(o *dedup.Options) { o.LeaseDuration = 2 * time.Second })
	if err != nil {
		return err
	}
	guarded := inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
		note("start", m.Body)
		select {
		case <-time.After(c.Take):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		tx.Update(&ddbtypes.Update{
			TableName: &c.Ledger, Key: map[string]ddbtypes.AttributeValue{"event": &ddbtypes.AttributeValueMemberS{Value: m.Body}},
			UpdateExpression:          aws.String("ADD effects :one"),
			ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":one": &ddbtypes.AttributeValueMemberN{Value: "1"}},
		})
		return nil
	})
	w, err := sqsworker.New(sqsClient(c.SQS), c.Queue, func(ctx context.Context, m *sqsonce.Message) error {
		err := guarded(ctx, m)
		if err == nil {
			note("done", m.Body)
		}
		return err
	}, func(o *sqsworker.Options) {
		o.Concurrency, o.MaxInFlight, o.WaitTime, o.VisibilityTimeout = c.Concurrency, 5*c.Concurrency, time.Second, c.Visibility
		o.Backoff = func(int) time.Duration { return time.Second }
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return w.Run(ctx)
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
}

func sqsClient(endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: sqsworker.HTTPClient(40),
		Credentials: aws.CredentialsProviderFunc(credentials),
	})
}

func dynamoClient(endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: &http.Client{},
		Credentials: aws.CredentialsProviderFunc(credentials),
	})
}
