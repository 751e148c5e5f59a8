package lambda

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// fixture is a queue with a dead-letter queue and a real client, in virtual time.
type fixture struct {
	*testing.T
	srv      *memsqs.Server
	c        *sqs.Client
	arn      string
	url, dlq string
	log      logBook
}

// visibility of the fixture's queue, six times a function timeout of 30 s.
const visibility = 180 * time.Second

func withQueue(t *testing.T, fifo bool, faults []fault.Rule, f func(*fixture), optFns ...func(*memsqs.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := memsqs.New(append(optFns, func(o *memsqs.Options) { o.Faults = fault.Plan{Seed: 1, Rules: faults} })...)
		defer srv.Close()
		x := &fixture{T: t, srv: srv, arn: standardARN, c: testaws.SQS(srv)}
		suffix := ""
		if fifo {
			suffix, x.arn = ".fifo", fifoARN
		}
		x.createQueues(suffix)
		f(x)
	})
}

// runWithQueue is a subtest of withQueue.
func runWithQueue(t *testing.T, name string, fifo bool, faults []fault.Rule, f func(*fixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { withQueue(t, fifo, faults, f) })
}

func (x *fixture) createQueues(suffix string) {
	attrs := map[string]string{"VisibilityTimeout": "180"}
	x.url, x.dlq = testaws.Queue(x, x.c, "jobs"+suffix, attrs), testaws.Queue(x, x.c, "jobs-dlq"+suffix, attrs)
}

// set sets an attribute of a queue.
func (x *fixture) set(url, name, value string) {
	x.Helper()
	must.Get(x.c.SetQueueAttributes(context.Background(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{name: value}}))(x)
}

// send sends bodies. On a FIFO queue a body begins with its group.
func (x *fixture) send(bodies ...string) {
	x.Helper()
	for _, b := range bodies {
		in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &b}
		if strings.HasSuffix(x.arn, ".fifo") {
			in.MessageGroupId, in.MessageDeduplicationId = aws.String(b[:1]), &b
		}
		must.Get(x.c.SendMessage(context.Background(), in))(x)
	}
}

// receive returns an event of all visible messages.
func (x *fixture) receive() events.SQSEvent {
	x.Helper()
	var e events.SQSEvent
	for {
		out := must.Get(x.c.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{
			QueueUrl: &x.url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
		}))(x)
		if len(out.Messages) == 0 {
			return e
		}
		for _, m := range out.Messages {
			r := events.SQSMessage{
				MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
				EventSource: "aws:sqs", EventSourceARN: x.arn, AWSRegion: "us-east-1", MessageAttributes: map[string]events.SQSMessageAttribute{},
			}
			for name, a := range m.MessageAttributes {
				r.MessageAttributes[name] = events.SQSMessageAttribute{StringValue: a.StringValue, BinaryValue: a.BinaryValue, DataType: *a.DataType}
			}
			e.Records = append(e.Records, r)
		}
	}
}

func (x *fixture) wrap(h sqsonce.Handler, optFns ...func(*Options)) function {
	x.Helper()
	optFns = append([]func(*Options){func(o *Options) {
		o.Client, o.DeadLetterQueue, o.Logger = x.c, x.dlq, x.log.logger()
		o.Backoff = func(n int) time.Duration { return time.Duration(n) * 10 * time.Second }
	}}, optFns...)
	return wrap(x, h, optFns...)
}

// byBody runs the handler of the message's body, else that of "".
func byBody(h handlers) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		if f := h[m.Body]; f != nil {
			return f(ctx, m)
		}
		return handlers{"": h[""]}.handle(ctx, m)
	}
}

// failed invokes f and returns the bodies of the messages it names.
func (x *fixture) failed(f function, timeout time.Duration, e events.SQSEvent) string {
	x.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r := must.Get(f(ctx, e))(x)
	if ctx.Err() != nil {
		x.Error("returned after the deadline")
	}
	bodies := map[string]string{}
	for _, rec := range e.Records {
		bodies[rec.MessageId] = rec.Body
	}
	var out []string
	for _, f := range r.BatchItemFailures {
		out = append(out, bodies[f.ItemIdentifier])
	}
	return strings.Join(out, " ")
}

// visibleIn returns the time until each message of the queue is visible, by body.
func (x *fixture) visibleIn() map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, m := range x.srv.Messages(x.url) {
		out[m.Body] = time.Until(m.VisibleAt)
	}
	return out
}

func (x *fixture) calls(op string) (n int) {
	for _, c := range x.srv.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}
