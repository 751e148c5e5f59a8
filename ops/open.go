package ops

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

// RefusedError says that nothing was done because of how the queue is. Err is one of the errors below.
type RefusedError struct {
	Operation string // "Open", "List", "Redrive", "Replay", "Export", "Delete", "Restore"
	Queue     string // its ARN
	Err       error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("ops: %s refused for %s: %v", e.Operation, e.Queue, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// What a [RefusedError] is for.
var (
	ErrNotDeadLetter = errors.New("no queue has a redrive policy that names it as the dead-letter queue: give the URL of the right queue, or set Options.NotDeadLetter")
	ErrMoveTask      = errors.New("a message move task takes messages out of it: wait until it has ended, or cancel it (sqs:CancelMessageMoveTask)")
	ErrTwoAtOnce     = errors.New("another process of this machine redrives from it or restores to it, with a journal in the same folder: wait until that has ended")
	ErrChained       = errors.New("it has a redrive policy of its own, so that looking can move its messages on: set SpendReceives if they may be")
)

// DLQ is a dead-letter queue. It is safe for concurrent use, but one listing does not see what the other one holds.
type DLQ struct {
	client    Client
	url, arn  string
	fifo      bool
	chained   bool              // it has a redrive policy
	retention time.Duration     // of its messages; 0: not known
	source    string            // of messages that do not say; "": not known
	urls      map[string]string // by ARN: the queues that messages may come from
	opts      Options

	journalFile func(appender) appender // what journals are written to, in tests
}

// Open reads what the queue is. It returns a [*RefusedError] with [ErrNotDeadLetter] or [ErrMoveTask], a
// [*sqsonce.OptionError] for each option that cannot be used, joined, or the error of the call that failed: what could not be
// checked is not taken for granted.
func Open(ctx context.Context, c Client, dlqURL string, optFns ...func(*Options)) (*DLQ, error) {
	d := &DLQ{client: c, url: dlqURL, fifo: host.IsFIFO(dlqURL)}
	for _, fn := range optFns {
		fn(&d.opts)
	}
	if err := d.opts.resolve(c, dlqURL); err != nil {
		return nil, err
	}
	if err := d.readAttributes(ctx); err != nil {
		return nil, err
	}
	if d.opts.Source == d.arn {
		return nil, badField("Options.Source", "is %s, the dead-letter queue itself", d.arn)
	}
	if err := d.readSources(ctx); err != nil {
		return nil, err
	}
	if len(d.urls) == 0 && !d.opts.NotDeadLetter {
		return nil, &RefusedError{"Open", d.arn, ErrNotDeadLetter}
	}
	d.setSource()
	if err := d.checkMoveTasks(ctx, "Open"); err != nil {
		return nil, err
	}
	return d, nil
}

// attributes asks SQS for attributes of the queue.
func (d *DLQ) attributes(ctx context.Context, names ...sqstypes.QueueAttributeName) (map[string]string, error) {
	out, err := d.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &d.url, AttributeNames: names})
	if err != nil {
		return nil, d.failed("GetQueueAttributes", err)
	}
	return out.Attributes, nil
}

func (d *DLQ) readAttributes(ctx context.Context) error {
	attrs, err := d.attributes(ctx, sqstypes.QueueAttributeNameQueueArn, sqstypes.QueueAttributeNameRedrivePolicy,
		sqstypes.QueueAttributeNameMessageRetentionPeriod)
	if err != nil {
		return err
	}
	d.arn = attrs[string(sqstypes.QueueAttributeNameQueueArn)]
	if _, err := host.ParseQueueARN(d.arn); err != nil {
		return d.failed("GetQueueAttributes", err)
	}
	d.chained = attrs[string(sqstypes.QueueAttributeNameRedrivePolicy)] != ""
	seconds, _ := strconv.Atoi(attrs[string(sqstypes.QueueAttributeNameMessageRetentionPeriod)]) // 0: not known
	d.retention = time.Duration(seconds) * time.Second
	return nil
}

// readSources finds the queues whose dead-letter queue this is. They are in its account and Region.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
func (d *DLQ) readSources(ctx context.Context) error {
	d.urls = map[string]string{}
	prefix := d.arn[:strings.LastIndexByte(d.arn, ':')+1]
	in := &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &d.url, MaxResults: aws.Int32(1000)}
	for {
		out, err := d.client.ListDeadLetterSourceQueues(ctx, in)
		if err != nil {
			return d.failed("ListDeadLetterSourceQueues", err)
		}
		for _, u := range out.QueueUrls {
			d.urls[prefix+host.QueueName(u)] = u
		}
		if aws.ToString(out.NextToken) == "" {
			return nil
		}
		in.NextToken = out.NextToken
	}
}

// setSource sets the queue of messages that do not say where they came from. One that SQS does not name has a URL like the
// dead-letter queue's, which is in the same account and Region.
func (d *DLQ) setSource() {
	if d.source = d.opts.Source; d.source == "" && len(d.urls) == 1 {
		for arn := range d.urls {
			d.source = arn
		}
	}
	own := d.arn[:strings.LastIndexByte(d.arn, ':')+1]
	if name, ok := strings.CutPrefix(d.source, own); ok && d.urls[d.source] == "" {
		d.urls[d.source] = d.url[:strings.LastIndexByte(d.url, '/')+1] + name
	}
}

// checkMoveTasks looks at the newest task: a queue has one at a time.
func (d *DLQ) checkMoveTasks(ctx context.Context, operation string) error {
	out, err := d.client.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &d.arn, MaxResults: aws.Int32(1)})
	if err != nil {
		return d.failed("ListMessageMoveTasks", err)
	}
	for _, task := range out.Results {
		if status := aws.ToString(task.Status); status == "RUNNING" || status == "CANCELLING" {
			return &RefusedError{operation, d.arn, ErrMoveTask}
		}
	}
	return nil
}

// failed names the action, as policies do, and the queue.
func (d *DLQ) failed(action string, err error) error {
	return fmt.Errorf("ops: sqs:%s of %s: %w", action, d.url, err)
}
