package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/host"
)

// DLQ is a dead-letter queue. It is safe for concurrent use, but one listing doesn't see the messages that another one hides.
type DLQ struct {
	client    Client
	url, arn  string
	fifo      bool
	chained   bool              // it has a redrive policy
	retention time.Duration     // of its messages; 0: not known
	source    string            // of messages that do not say; "": not known
	urls      map[string]string // by ARN: the queues that messages may come from
	opts      Options
	delays    sync.Map    // by URL: see delayOf
	functions atomic.Bool // a message named the record of a key function
	proven    atomic.Bool // a message has a record of the consumer under its default key

	wrap func(appender) appender // of journals and archives, in tests
}

// Open reads the attributes and sources of the queue. It refuses a queue that isn't the dead-letter queue of another one, and a
// queue from which a move task is moving messages ([errBusy]). It returns a [*sqsonce.OptionError] for each unusable option,
// joined, or the error of the failed call.
func Open(ctx context.Context, c Client, dlqURL string, optFns ...func(*Options)) (*DLQ, error) {
	d := &DLQ{client: c, url: dlqURL, fifo: host.IsFIFO(dlqURL)}
	for _, fn := range optFns {
		fn(&d.opts)
	}
	if err := d.opts.resolve(dlqURL); err != nil {
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
		return nil, d.refused("Open", errNotDeadLetter)
	}
	d.setSource()
	if err := d.checkMoveTasks(ctx, "Open"); err != nil {
		return nil, err
	}
	return d, nil
}

// attributes asks SQS for attributes of a queue.
func (d *DLQ) attributes(ctx context.Context, url string, names ...sqstypes.QueueAttributeName) (map[string]string, error) {
	out, err := d.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		return nil, d.failed("GetQueueAttributes", err)
	}
	return out.Attributes, nil
}

func (d *DLQ) readAttributes(ctx context.Context) error {
	attrs, err := d.attributes(ctx, d.url, sqstypes.QueueAttributeNameQueueArn, sqstypes.QueueAttributeNameRedrivePolicy,
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
			return d.refused(operation, ErrMoveTask)
		}
	}
	return nil
}

// refused says that nothing was done because of how the queue is.
func (d *DLQ) refused(operation string, err error) error {
	return &RefusedError{Operation: operation, Queue: d.arn, Err: err}
}

// refuseChained refuses an operation that receives from a queue with a redrive policy of its own.
func (d *DLQ) refuseChained(operation string) error {
	if d.chained && !d.opts.SpendReceives {
		return d.refused(operation, errChained)
	}
	return nil
}

// failed names the action, as policies do, and the queue.
func (d *DLQ) failed(action string, err error) error {
	return fmt.Errorf("sqs:%s of %s: %w", action, d.url, err)
}

// Client is the part of SQS that this package uses. *sqs.Client implements it. Retries are those that you configure for the
// client.
type Client interface {
	fifo.Client
	ListDeadLetterSourceQueues(context.Context, *sqs.ListDeadLetterSourceQueuesInput, ...func(*sqs.Options)) (*sqs.ListDeadLetterSourceQueuesOutput, error)
	ListMessageMoveTasks(context.Context, *sqs.ListMessageMoveTasksInput, ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

var _ Client = (*sqs.Client)(nil)

const leastRetention = time.Hour

// Options configure [Open].
type Options struct {
	// Key returns the key of a message's record. Use the Key of a dedup.Once with the consumer's name and options. Key gets the
	// message as the consumer of the source queue sees it, and must not change it. Calls are concurrent.
	// Default: nil, messages are not joined with records.
	Key func(*sqsonce.Message) (string, error)
	// Store has the consumer's records.
	// Default: nil, messages are not joined with records.
	Store dedup.Inspector
	// Consumer is the consumer's name. A copy that names the record of a key function then finds it without the function, and one
	// that names another consumer's record has a Problem. Leave it empty where Key calls the consumer's key function.
	// Default: empty.
	Consumer string
	// SameKeys says that Key makes the consumer's keys, that its records are in Store, and that they are kept for Retention. A
	// message without a record is then StateNone if another message of the queue has one, unless the message or the queue
	// contradicts that.
	// Default: false, it is StateUnknown.
	SameKeys bool
	// NoOpenEnvelope says that the consumer's handler runs without sqsonce.OpenEnvelope, so Key gets an envelope as it is.
	// Default: false, Key gets the message in the envelope.
	NoOpenEnvelope bool
	// S3 says that the consumer's handler runs behind sqsonce.S3, and NoS3 that it doesn't.
	// Default: neither, and a notification of S3 whose key depends on that has the Problem ErrS3. Operations don't
	// select it.
	S3, NoS3 bool
	// Retention is the consumer's dedup.Options.Retention.
	// Default: 29 days. Limits: at least 1 h.
	Retention time.Duration
	// Source is the ARN of the source queue of messages that don't name one.
	// Default: the source of the dead-letter queue if it has exactly one.
	Source string
	// Sources are the ARNs of the queues whose consumer uses Key and Store. Without Sources, this package judges messages of
	// other queues by that consumer's records, too. With Sources, those messages have a Problem, and operations don't select
	// them.
	// Default: all queues.
	Sources []string
	// NotDeadLetter accepts a queue without source queues, such as one that only hosts send to.
	// Default: false, Open refuses such a queue.
	NotDeadLetter bool
	// SpendReceives accepts that SQS may move a message on because an operation received it. This happens on a dead-letter queue
	// with a redrive policy of its own.
	// Default: false, operations that receive refuse such a queue.
	SpendReceives bool
	// Hold is how long a message stays hidden at most if the process is killed. An operation that deletes messages extends it
	// after half of the time. A listing stops reading 5 s before the end.
	// Default: 60 s. For a listing 60 s for each 10,000 messages, or part of them, that the limit and the queue's count
	// allow. Limits: 10 s to 12 h, rounded up to whole seconds.
	Hold time.Duration
}

// badField returns a problem of an option.
func badField(field, format string, args ...any) error {
	return &sqsonce.OptionError{Package: "ops", Field: field, Problem: fmt.Sprintf(format, args...)}
}

// resolve sets the defaults and reports everything that flags can say and that cannot be used.
func (o *Options) resolve(dlqURL string) error {
	var errs []error
	if o.Retention = cmp.Or(o.Retention, host.DefaultRetention); o.Retention < leastRetention {
		errs = append(errs, badField("Options.Retention", "is %s, must be at least %s", o.Retention, leastRetention))
	}
	if o.Hold != 0 && (o.Hold < leastHold || o.Hold > mostHold) {
		errs = append(errs, badField("Options.Hold", "is %s, must be %s to %s", o.Hold, leastHold, mostHold))
	}
	o.Hold = (o.Hold + time.Second - 1).Truncate(time.Second)
	if o.Source != "" {
		if _, err := host.ParseQueueARN(o.Source); err != nil {
			errs = append(errs, badField("Options.Source", "is %.256q, must be a queue's ARN", o.Source))
		} else if host.IsFIFO(o.Source) != host.IsFIFO(dlqURL) {
			errs = append(errs, badField("Options.Source", "is %s, must be of the same kind as the dead-letter queue: standard or FIFO", o.Source))
		}
	}
	return errors.Join(errs...)
}
