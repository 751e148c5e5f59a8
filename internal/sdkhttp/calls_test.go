package sdkhttp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// counted is a transport that counts its requests, and the writes to its connections.
type counted struct {
	http.Transport
	requests, writes atomic.Int64
}

func newCounted(t *testing.T) *counted {
	c := &counted{}
	c.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return countedConn{conn, &c.writes}, err
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.Transport.RoundTrip(r)
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// The calls that a worker, a publisher and the store in DynamoDB make for each message are Whole.
func TestCallsAreWhole(t *testing.T) {
	t.Parallel()
	queues, tables := memsqs.New(), memdynamodb.New()
	server := httptest.NewServer(localstack.Handler(queues, tables))
	t.Cleanup(server.Close)
	signed := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
	})
	queuesOf := func(transport http.RoundTripper) *sqs.Client {
		return sqs.New(sqs.Options{
			Region: "us-east-1", BaseEndpoint: &server.URL, HTTPClient: &http.Client{Transport: transport},
			Credentials: signed,
		})
	}
	tablesOf := func(transport http.RoundTripper) *dynamodb.Client {
		return dynamodb.New(dynamodb.Options{
			Region: "us-east-1", BaseEndpoint: &server.URL, HTTPClient: &http.Client{Transport: transport},
			Credentials: signed,
		})
	}
	queue := must.Get(queuesOf(queues).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")}))(t)
	must.Do(t, dynamostore.CreateTable(t.Context(), tablesOf(tables), "dedup"))

	sends := newCounted(t)
	publisher := must.Get(fifo.NewPublisher(queuesOf(sends), *queue.QueueUrl, "orders"))(t)
	must.Get(publisher.Publish(t.Context(), fifo.Event{ID: "1", Body: "{}"}))(t)
	must.Do(t, publisher.Close(t.Context()))

	receives, writes := newCounted(t), newCounted(t)
	once := must.Get(dedup.New(must.Get(dynamostore.New(tablesOf(writes), "dedup"))(t), "billing"))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	worker := must.Get(sqsworker.New(queuesOf(receives), *queue.QueueUrl, once.Handler(func(context.Context, *sqsonce.Message) error {
		cancel()
		return nil
	}), func(o *sqsworker.Options) { o.WaitTime = time.Second }))(t)
	must.Do(t, worker.Run(ctx))

	for name, c := range map[string]*counted{"publisher": sends, "worker": receives, "store": writes} {
		if requests, writes := c.requests.Load(), c.writes.Load(); requests == 0 || writes > requests {
			t.Errorf("%s: %d requests, %d writes", name, requests, writes)
		}
	}
}
