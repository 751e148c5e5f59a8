package ops

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/opserr"
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

	wrap func(appender) appender // of journals and archives, in tests
}

// Open reads the attributes and sources of the queue. It refuses a queue that is the dead-letter queue of none, and one out of which a
// move task takes messages ([ErrBusy]). It returns a [*sqsonce.OptionError] for each option that cannot be used, joined, or the
// error of the call that failed.
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
		return nil, d.refused("Open", opserr.ErrNotDeadLetter)
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
			return d.refused(operation, opserr.ErrMoveTask)
		}
	}
	return nil
}

// refused says that nothing was done because of how the queue is.
func (d *DLQ) refused(operation string, err error) error {
	return &opserr.RefusedError{Operation: operation, Queue: d.arn, Err: err}
}

// refuseChained refuses an operation that receives from a queue with a redrive policy of its own.
func (d *DLQ) refuseChained(operation string) error {
	if d.chained && !d.opts.SpendReceives {
		return d.refused(operation, opserr.ErrChained)
	}
	return nil
}

// failed names the action, as policies do, and the queue.
func (d *DLQ) failed(action string, err error) error {
	return fmt.Errorf("ops: sqs:%s of %s: %w", action, d.url, err)
}
