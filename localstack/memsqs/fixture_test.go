package memsqs_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// fixture is a server with one queue under a real client, inside a bubble.
type fixture struct {
	*testing.T
	srv   *memsqs.Server
	c     *sqs.Client
	url   string
	later *sync.WaitGroup
}

type attrs = map[string]string

// run runs f in a bubble with a queue of the given name and attributes.
func run(t *testing.T, name string, a attrs, f func(*fixture), optFns ...func(*memsqs.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := memsqs.New(optFns...)
		defer srv.Close()
		x := &fixture{T: t, srv: srv, c: client(srv, "http://sqs.local"), later: new(sync.WaitGroup)}
		x.url = x.create(name, a)
		f(x)
		x.later.Wait()
	})
}

// after runs f after d. The test waits for f: what f changes can wake a poll, and so end the test, before f has got its own
// response.
func (x *fixture) after(d time.Duration, f func()) {
	x.later.Add(1)
	time.AfterFunc(d, func() {
		defer x.later.Done()
		f()
	})
}

func standard(t *testing.T, f func(*fixture), optFns ...func(*memsqs.Options)) {
	t.Helper()
	run(t, "jobs", nil, f, optFns...)
}

func fifo(t *testing.T, f func(*fixture), optFns ...func(*memsqs.Options)) {
	t.Helper()
	run(t, "jobs.fifo", attrs{"FifoQueue": "true"}, f, optFns...)
}

// onStandard and onFIFO are subtests of the kinds of queues.
func onStandard(t *testing.T, name string, f func(*fixture), optFns ...func(*memsqs.Options)) {
	t.Run(name, func(t *testing.T) { standard(t, f, optFns...) })
}

func onFIFO(t *testing.T, name string, f func(*fixture), optFns ...func(*memsqs.Options)) {
	t.Run(name, func(t *testing.T) { fifo(t, f, optFns...) })
}

func strictHandles(o *memsqs.Options) { o.StrictHandles = true }

func client(transport http.RoundTripper, endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint), HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
		Retryer: aws.NopRetryer{},
	})
}

func (x *fixture) create(name string, a attrs) string {
	x.Helper()
	if len(name) > 5 && name[len(name)-5:] == ".fifo" && a["FifoQueue"] == "" {
		merged := attrs{"FifoQueue": "true"}
		for k, v := range a {
			merged[k] = v
		}
		a = merged
	}
	out := must.Get(x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: a}))(x)
	return *out.QueueUrl
}

// send sends body; on a FIFO queue to a group, with the body as deduplication ID.
func (x *fixture) send(body string, group ...string) *sqs.SendMessageOutput {
	x.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body}
	if len(group) > 0 {
		in.MessageGroupId, in.MessageDeduplicationId = &group[0], &body
	}
	out, err := x.c.SendMessage(x.Context(), in)
	if err != nil {
		x.Fatalf("SendMessage(%q): %v", body, err)
	}
	return out
}

// receive receives up to n messages without waiting, all attributes.
func (x *fixture) receive(n int32, optFns ...func(*sqs.ReceiveMessageInput)) []types.Message {
	x.Helper()
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &x.url, MaxNumberOfMessages: n, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	}
	for _, f := range optFns {
		f(in)
	}
	out := must.Get(x.c.ReceiveMessage(x.Context(), in))(x)
	return out.Messages
}

// want receives up to ten messages and compares their bodies.
func (x *fixture) want(bodies ...string) []types.Message {
	x.Helper()
	got := x.receive(10)
	x.same(got, bodies...)
	return got
}

func (x *fixture) same(got []types.Message, bodies ...string) {
	x.Helper()
	ok := len(got) == len(bodies)
	for i := range min(len(got), len(bodies)) {
		ok = ok && *got[i].Body == bodies[i]
	}
	if !ok {
		var have []string
		for _, m := range got {
			have = append(have, *m.Body)
		}
		x.Fatalf("received %q, want %q", have, bodies)
	}
}

func (x *fixture) delete(m types.Message) error {
	_, err := x.c.DeleteMessage(x.Context(), &sqs.DeleteMessageInput{QueueUrl: &x.url, ReceiptHandle: m.ReceiptHandle})
	return err
}

func (x *fixture) visibility(m types.Message, seconds int32) error {
	_, err := x.c.ChangeMessageVisibility(x.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &x.url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	return err
}

func (x *fixture) ok(err error) {
	x.Helper()
	if err != nil {
		x.Fatalf("got error %v, want none", err)
	}
}

// code checks the error code that the client returns.
func (x *fixture) code(err error, want string) {
	x.Helper()
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok || e.ErrorCode() != want {
		x.Fatalf("got error %v, want code %s", err, want)
	}
}

func count(m types.Message) int {
	n, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	return n
}
