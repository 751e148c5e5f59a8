//go:build aws

package suites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// The core of internal/hosttest on real services: success, a second copy, a failure, a reject and its redrive, in both
// hosts. The function runs in this process, behind our event source mapping.
func TestSmoke(t *testing.T) {
	for _, host := range []struct {
		name string
		run  func(*smoke, context.Context) error
	}{{"worker", (*smoke).runWorker}, {"function", (*smoke).runFunction}} {
		for suffix, kind := range map[string]string{"": "standard", ".fifo": "fifo"} {
			t.Run(host.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s := newSmoke(t, suffix)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- host.run(s, ctx) }()
				s.scenario()
				stop()
				if err := <-ended; err != nil {
					t.Errorf("the host ended with %v", err)
				}
			})
		}
	}
}

type smoke struct {
	*testing.T
	client   *sqs.Client
	url, dlq string
	suffix   string
	handler  sqsonce.Handler

	mu   sync.Mutex
	runs map[string]int
}

type order struct{ Name string }

func newSmoke(t *testing.T, suffix string) *smoke {
	s := &smoke{T: t, client: sqsClient(t), suffix: suffix, runs: map[string]int{}}
	ddb := dynamoClient(t)
	store := must.Get(dynamostore.New(ddb, newTable(t, ddb)))(t)
	once := must.Get(dedup.New(store, "smoke"))(t)
	s.handler = once.Handler(sqsonce.JSON(s.handle))
	s.dlq = s.create("dlq", nil)
	s.url = s.create("orders", map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":10}`, s.arn(s.dlq)), "VisibilityTimeout": "30",
	})
	return s
}

func (s *smoke) create(what string, attributes map[string]string) string {
	if attributes == nil {
		attributes = map[string]string{}
	}
	if s.suffix != "" {
		attributes["FifoQueue"] = "true"
	}
	out := must.Get(s.client.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name(what) + s.suffix), Attributes: attributes}))(s)
	return *out.QueueUrl
}

func (s *smoke) arn(url string) string { return s.attributes(url)["QueueArn"] }

func (s *smoke) attributes(url string) map[string]string {
	out := must.Get(s.client.GetQueueAttributes(s.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"All"}}))(s)
	return out.Attributes
}

func (s *smoke) handle(_ context.Context, o order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[o.Name]++
	switch {
	case o.Name == "fails-once" && s.runs[o.Name] == 1:
		return errors.New("fails once")
	case o.Name == "rejected":
		return sqsonce.Reject(errors.New("rejected by the test"))
	}
	return nil
}

func (s *smoke) runWorker(ctx context.Context) error {
	w, err := sqsworker.New(s.client, s.url, s.handler, func(o *sqsworker.Options) {
		o.WaitTime = 2 * time.Second
		o.Backoff = func(int) time.Duration { return time.Second }
		o.Logger = slog.New(slog.NewTextHandler(s.Output(), nil))
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func (s *smoke) runFunction(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(s.Output(), nil))
	f, err := lambda.Wrap(s.handler, func(o *lambda.Options) {
		o.Client, o.DeadLetterQueue, o.Logger = s.client, s.dlq, log
		o.Backoff = func(int) time.Duration { return time.Second }
	})
	if err != nil {
		return err
	}
	return esm.Run(ctx, s.client, esm.Config{
		QueueURL: s.url, FunctionTimeout: 20 * time.Second, ReportBatchItemFailures: true, Wait: 2 * time.Second, Logger: log,
	}, func(ctx context.Context, event []byte) ([]byte, error) {
		var e events.SQSEvent
		if err := json.Unmarshal(event, &e); err != nil {
			return nil, err
		}
		r, err := f(ctx, e)
		if err != nil {
			return nil, err
		}
		return json.Marshal(r)
	})
}

func (s *smoke) scenario() {
	p, err := fifo.NewPublisher(s.client, s.url, "smoke")
	if err != nil {
		s.Fatal(err)
	}
	for _, n := range []string{"done", "twice", "fails-once", "rejected"} {
		must.Get(p.Publish(s.Context(), fifo.Event{ID: n, Group: n, Body: fmt.Sprintf(`{"Name":%q}`, n)}))(s)
	}
	must.Do(s, p.Close(s.Context()))
	s.sendAgain("twice")
	s.reaches(map[string]int{"done": 1, "twice": 1, "fails-once": 2, "rejected": 1})
	if _, err := s.client.StartMessageMoveTask(s.Context(), &sqs.StartMessageMoveTaskInput{
		SourceArn: aws.String(s.arn(s.dlq)), DestinationArn: aws.String(s.arn(s.url)), // it was sent there, not moved by SQS
	}); err != nil {
		s.Fatal(err)
	}
	s.reaches(map[string]int{"done": 1, "twice": 1, "fails-once": 2, "rejected": 2})
	out, err := s.client.ReceiveMessage(s.Context(), &sqs.ReceiveMessageInput{QueueUrl: &s.dlq, WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"}})
	if err != nil || len(out.Messages) != 1 || out.Messages[0].MessageAttributes[sqsonce.AttrRejectReason].StringValue == nil {
		s.Errorf("the dead-letter queue has %+v (error %v), want the rejected message with its reason", out, err)
	}
}

// sendAgain sends an event with another message ID, as a producer does that does not know of the first send.
func (s *smoke) sendAgain(event string) {
	text := func(v string) sqstypes.MessageAttributeValue {
		return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
	}
	in := &sqs.SendMessageInput{
		QueueUrl: &s.url, MessageBody: aws.String(fmt.Sprintf(`{"Name":%q}`, event)),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{sqsonce.AttrEventSource: text("smoke"), sqsonce.AttrEventID: text(event)},
	}
	if s.suffix != "" {
		in.MessageGroupId, in.MessageDeduplicationId = &event, aws.String(event+"-again")
	}
	must.Get(s.client.SendMessage(s.Context(), in))(s)
}

// reaches waits until the queue is empty, the rejected message is in the dead-letter queue, and the handlers have run so often.
func (s *smoke) reaches(want map[string]int) {
	s.Helper()
	var runs map[string]int
	var left map[string]string
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; time.Sleep(time.Second) {
		s.mu.Lock()
		runs = maps.Clone(s.runs)
		s.mu.Unlock()
		left = s.attributes(s.url)
		if maps.Equal(runs, want) && left["ApproximateNumberOfMessages"] == "0" && left["ApproximateNumberOfMessagesNotVisible"] == "0" &&
			s.attributes(s.dlq)["ApproximateNumberOfMessages"] == "1" {
			return
		}
	}
	s.Fatalf("after two minutes the handlers have run %v times, want %v; attributes of the queue: %v", runs, want, left)
}
