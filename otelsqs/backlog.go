package otelsqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqsonce/sqsonce/internal/host"
)

// BacklogClient is the part of SQS that [Telemetry.Backlog] uses. It needs sqs:GetQueueAttributes.
type BacklogClient interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

const (
	leastInterval  = 10 * time.Second
	backlogTimeout = 5 * time.Second // of a call: the collection waits for it
)

// Backlog reports how many messages are in the queues, as sqsonce.queue.messages, for monitoring that doesn't see CloudWatch. It
// asks SQS when metrics are collected, at most once per interval and queue. Name the dead-letter queues too. The numbers are
// SQS's approximate ones. If the call for a queue fails, the queue has no value until a later call succeeds, and the SDK reports
// the error. Call stop to end the reports. Limits: an interval of at least 10 s.
func (t *Telemetry) Backlog(c BacklogClient, every time.Duration, queueURLs ...string) (stop func(), err error) {
	p := host.Problems{Package: "otelsqs"}
	p.Add(host.IsNil(c), "client", "is nil")
	p.Add(every < leastInterval, "every", "is %s, must be at least %s", every, leastInterval)
	p.Add(len(queueURLs) == 0, "queueURLs", "is empty")
	queues := map[string]*backlog{}
	for i, url := range queueURLs {
		problem := host.QueueURLProblem(url)
		p.Add(problem != "", fmt.Sprintf("queueURLs[%d]", i), "%s", problem)
		queues[url] = newBacklog(c, url, every)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	gauge, err := t.meter.Int64ObservableGauge("sqsonce.queue.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Messages in the queue, as SQS counts them."))
	if err != nil {
		return nil, err
	}
	registration, err := t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var errs []error
		for _, q := range queues {
			wg.Go(func() {
				var counts []int64
				var err error
				if panicked := host.Recover(func() { counts, err = q.read(ctx) }); panicked != nil {
					err = panicked // the client is the user's
				}
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
				for i, n := range counts {
					o.ObserveInt64(gauge, n, q.attributes[i])
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}, gauge)
	if err != nil {
		return nil, err
	}
	return func() { _ = registration.Unregister() }, nil // its error says that it was unregistered before
}

// backlogStates are the states of messages, and the attributes of a queue that count them.
var backlogStates = []struct {
	name  string
	count sqstypes.QueueAttributeName
}{
	{"visible", sqstypes.QueueAttributeNameApproximateNumberOfMessages},
	{"in_flight", sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible},
	{"delayed", sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed},
}

// backlog is the known state of a queue.
type backlog struct {
	client     BacklogClient
	in         *sqs.GetQueueAttributesInput
	every      time.Duration
	attributes []metric.ObserveOption // of each state

	mu     sync.Mutex // held during a call: a second reader waits for its answer
	next   time.Time  // when SQS is asked again
	counts []int64    // of each state; nil: the last call failed
}

func newBacklog(c BacklogClient, url string, every time.Duration) *backlog {
	b := &backlog{client: c, in: &sqs.GetQueueAttributesInput{QueueUrl: &url}, every: every}
	for _, s := range backlogStates {
		b.in.AttributeNames = append(b.in.AttributeNames, s.count)
		attrs := newDestination(url).with(keyState.String(s.name))
		b.attributes = append(b.attributes, metric.WithAttributeSet(attribute.NewSet(attrs...)))
	}
	return b
}

// read returns the counts, of the last call while that is young enough. The error of a call is returned once.
func (b *backlog) read(ctx context.Context) ([]int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Before(b.next) {
		return b.counts, nil
	}
	b.next, b.counts = now.Add(b.every), nil
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	out, err := b.client.GetQueueAttributes(ctx, b.in)
	if err != nil {
		return nil, fmt.Errorf("otelsqs: messages of %s: %w", *b.in.QueueUrl, err)
	}
	counts := make([]int64, len(backlogStates))
	for i, s := range backlogStates {
		if counts[i], err = strconv.ParseInt(out.Attributes[string(s.count)], 10, 64); err != nil {
			return nil, fmt.Errorf("otelsqs: %s of %s: %w", s.count, *b.in.QueueUrl, err)
		}
	}
	b.counts = counts
	return counts, nil
}
