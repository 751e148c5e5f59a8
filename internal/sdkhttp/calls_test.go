package sdkhttp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// counted is a transport to one server, which counts its requests and the writes to its connections.
type counted struct {
	http.Transport
	requests, writes atomic.Int64
}

func newCounted(t *testing.T, address string) *counted {
	c := &counted{}
	c.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
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
	address := server.Listener.Addr().String()
	queue := testaws.Queue(t, testaws.SQS(queues), "orders", nil)
	must.Do(t, dynamostore.CreateTable(t.Context(), testaws.DynamoDB(tables), "dedup"))

	sends := newCounted(t, address)
	publisher := must.Get(fifo.NewPublisher(testaws.SQS(sends), queue, "orders"))(t)
	must.Get(publisher.Publish(t.Context(), fifo.Event{ID: "1", Body: "{}"}))(t)
	must.Do(t, publisher.Close(t.Context()))

	receives, writes := newCounted(t, address), newCounted(t, address)
	once := must.Get(dedup.New(must.Get(dynamostore.New(testaws.DynamoDB(writes), "dedup"))(t), "billing"))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	worker := must.Get(sqsworker.New(testaws.SQS(receives), queue, once.Handler(func(context.Context, *sqsonce.Message) error {
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
