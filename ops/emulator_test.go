package ops_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/suite"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

const noSource = "does not name the source queue: taken for sent by somebody"

var motoKnown = map[string]string{
	"list/moved by SQS/standard":                        noSource,
	"list/moved by SQS/FIFO":                            noSource,
	"list/moved by SQS, key of the message ID/standard": noSource,
	"list/moved by SQS, key of the message ID/FIFO":     noSource,
}

func TestLocalStack(t *testing.T) {
	wire, url := to(t, testserver.LocalStack)
	runEmulatorCases(t, nil, wire, url)
}

// Moto has no ListMessageMoveTasks, and a check that could not run is an error of Open.
func TestMoto(t *testing.T) {
	wire, url := to(t, testserver.Moto)
	runEmulatorCases(t, motoKnown, withoutMoveTasks{wire}, url)
}

// The cases in real time on the server that all other tests use.
func TestInMemory(t *testing.T) {
	t.Parallel()
	srv := memsqs.New()
	t.Cleanup(srv.Close)
	runEmulatorCases(t, nil, srv, "http://sqs.local")
}

// to starts an emulator, and returns a transport to it.
func to(t *testing.T, e *testserver.Emulator) (wire http.RoundTripper, url string) {
	t.Parallel()
	url = e.Shared(t).URL
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	t.Cleanup(transport.CloseIdleConnections)
	return transport, url
}

// withoutMoveTasks answers ListMessageMoveTasks: there are none.
type withoutMoveTasks struct{ http.RoundTripper }

func (w withoutMoveTasks) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Target") != "AmazonSQS.ListMessageMoveTasks" {
		return w.RoundTripper.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(`{"Results":[]}`)), Request: r,
	}, nil
}

// runEmulatorCases runs each case on both kinds of queue. They wait more than they work.
func runEmulatorCases(t *testing.T, known map[string]string, wire http.RoundTripper, endpoint string) {
	var all []suite.Case
	for _, c := range emulatorCases {
		for _, kind := range []string{"standard", "FIFO"} {
			all = append(all, suite.Case{Name: c.name + "/" + kind, Run: func(t *testing.T) {
				c.run(newEmulated(t, kind == "FIFO", wire, endpoint))
			}})
		}
	}
	suite.Run(t, all, suite.Options{Known: known, AtOnce: len(all)})
}

// newEmulated returns a fixture with queues of its own, in real time.
func newEmulated(t *testing.T, fifo bool, wire http.RoundTripper, endpoint string) *fixture {
	x := &fixture{T: t, fifo: fifo, wire: wire, endpoint: endpoint, ddb: memdynamodb.New(), quiet: slog.New(slog.DiscardHandler)}
	t.Cleanup(x.ddb.Close)
	x.admin = x.newProcess()
	if err := dynamostore.CreateTable(t.Context(), x.admin.ddb, table); err != nil {
		t.Fatal(err)
	}
	name := "jobs-" + rand.Text()[:12]
	x.dlq = x.create(name+"-dlq", nil)
	x.url = x.create(name, map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, x.arn(x.dlq))})
	return x
}

func (x *fixture) arn(url string) string {
	x.Helper()
	out, err := x.admin.sqs.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	})
	if err != nil {
		x.Fatal(err)
	}
	return out.Attributes[string(sqstypes.QueueAttributeNameQueueArn)]
}

// moved has the message's handler fail once, and SQS move the message. It returns the key of its record.
func (x *fixture) moved(body string, attrs map[string]string) string {
	x.Helper()
	x.sendWith(x.url, body, attrs)
	in := x.receiveOne(x.url)
	m := messageOf(in)
	m.QueueARN = x.arn(x.url)
	once := x.once(x.admin)
	key, err := once.Key(m)
	if err != nil {
		x.Fatal(err)
	}
	if err := once.Handler(fails(errCard))(context.Background(), m); err == nil {
		x.Fatal("the handler did not fail")
	}
	if _, err := x.admin.sqs.ChangeMessageVisibility(context.Background(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &x.url, ReceiptHandle: in.ReceiptHandle, VisibilityTimeout: 0,
	}); err != nil {
		x.Fatal(err)
	}
	x.receive(x.url) // moves it
	return key
}

// rejected has a worker reject an event.
func (x *fixture) rejected(id string) {
	x.Helper()
	x.send(x.url, id)
	h := x.worker(x.url, x.guarded(fails(sqsonce.Reject(errCard))))
	defer h.stop()
	x.eventually("the worker rejects "+id, func() bool { return x.count(x.url) == 0 && x.count(x.dlq) > 0 })
}

// count returns how many messages a queue has.
func (x *fixture) count(url string) int {
	x.Helper()
	out, err := x.admin.sqs.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		x.Fatal(err)
	}
	n := 0
	for _, name := range []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages, sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	} {
		var one int
		if _, err := fmt.Sscan(out.Attributes[string(name)], &one); err != nil {
			x.Fatal(err)
		}
		n += one
	}
	return n
}

func (x *fixture) eventually(what string, is func() bool) {
	x.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			suite.Failf("after 30 s not yet: %s", what)
		}
	}
}
