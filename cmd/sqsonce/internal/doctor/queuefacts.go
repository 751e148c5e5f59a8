package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// queue is what SQS says of a queue.
type queue struct {
	url, name, arn string
	fifo           bool // by its name
	took           time.Duration
	attributes     map[string]string
}

func (q *queue) get(name sqstypes.QueueAttributeName) string { return q.attributes[string(name)] }

// account is that of the queue. readQueue has seen that the ARN is one.
func (q *queue) account() string {
	arn, err := host.ParseQueueARN(q.arn)
	if err != nil {
		return ""
	}
	return arn.Account
}

// seconds returns an attribute that each queue has.
func (q *queue) seconds(name sqstypes.QueueAttributeName) (time.Duration, error) {
	n, err := strconv.ParseUint(q.get(name), 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%s of %s is %.20q, no number of seconds", name, q.name, q.get(name))
	}
	return time.Duration(n) * time.Second, nil
}

// messages is how many are in the queue: visible, in flight and delayed.
func (q *queue) messages() (int, error) {
	sum := 0
	for _, name := range []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages, sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	} {
		n, err := strconv.ParseUint(q.get(name), 10, 31)
		if err != nil {
			return 0, fmt.Errorf("%s of %s is %.20q, no number", name, q.name, q.get(name))
		}
		sum += int(n)
	}
	return sum, nil
}

// queue is the source queue.
func (e *examination) queue(ctx context.Context) (*queue, error) {
	return e.source.get(ctx, func(ctx context.Context) (*queue, error) {
		if e.NoQueue != nil {
			return nil, e.NoQueue
		}
		return e.readQueue(ctx, e.QueueURL)
	})
}

// errNoDLQ says that the queue has no redrive policy: what looks at its dead-letter queue does not apply.
var errNoDLQ = errors.New("the queue has no dead-letter queue: see Q2")

// redrive is the queue's redrive policy: the ARN of its dead-letter queue, and maxReceiveCount, which is 0 where that cannot be read.
func (e *examination) redrive(ctx context.Context) (host.QueueARN, int, error) {
	q, err := e.queue(ctx)
	if err != nil {
		return host.QueueARN{}, 0, err
	}
	text := q.get(sqstypes.QueueAttributeNameRedrivePolicy)
	if text == "" {
		return host.QueueARN{}, 0, errNoDLQ
	}
	target, most, err := host.ParseRedrivePolicy(text)
	if err != nil {
		return host.QueueARN{}, 0, fmt.Errorf("the redrive policy of %s cannot be read: %w", q.name, err)
	}
	arn, err := host.ParseQueueARN(target)
	if err != nil {
		return host.QueueARN{}, 0, fmt.Errorf("the redrive policy of %s: %w", q.name, err)
	}
	return arn, most, nil
}

// deadLetterQueue is that of the source queue. Both are in one account and Region, so that their URLs differ in the name.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
func (e *examination) deadLetterQueue(ctx context.Context) (*queue, error) {
	return e.dead.get(ctx, func(ctx context.Context) (*queue, error) {
		arn, _, err := e.redrive(ctx)
		if err != nil {
			return nil, err
		}
		return e.readQueue(ctx, e.QueueURL[:strings.LastIndexByte(e.QueueURL, '/')+1]+arn.Name)
	})
}

// readQueue asks for all attributes: by name, SQS refuses those of the other kind of queue.
func (e *examination) readQueue(ctx context.Context, url string) (*queue, error) {
	switch {
	case url == "":
		return nil, errors.New("no queue is named")
	case e.SQS == nil:
		return nil, errNoClient
	}
	start := time.Now()
	out, err := e.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(url), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, err
	}
	q := &queue{url: url, name: host.QueueName(url), took: time.Since(start), attributes: out.Attributes}
	q.arn, q.fifo = q.get(sqstypes.QueueAttributeNameQueueArn), host.IsFIFO(q.name)
	if _, err := host.ParseQueueARN(q.arn); err != nil {
		return nil, fmt.Errorf("sqs says of %s: %w", q.name, err)
	}
	return q, nil
}

// isMissing reports whether SQS says that there is no such queue.
func isMissing(err error) bool {
	_, missing := errors.AsType[*sqstypes.QueueDoesNotExist](err)
	return missing
}
