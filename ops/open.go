package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
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

// Client is what this package needs of SQS. *sqs.Client implements it. Its retries are those of its user.
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
	// Key returns the key of a message's record: the Key of a dedup.Once with the consumer's name and options. It gets the message
	// as the consumer of the source queue sees it, and must not change it. It is called concurrently. Default: none, messages are
	// not joined with records.
	Key func(*sqsonce.Message) (string, error)
	// Store has the consumer's records. Default: none, messages are not joined with records.
	Store dedup.Inspector
	// NoUnwrap says that the consumer has no sqsonce.OpenEnvelope around its handler: Key gets an envelope as it is. Default: false, Key
	// gets the message in it.
	NoUnwrap bool
	// Retention is the consumer's dedup.Options.Retention. Default: 29 days. At least 1 h.
	Retention time.Duration
	// Source is the ARN of the queue of messages that do not say which one they came from. Default: where the dead-letter queue
	// has one source that one, else none.
	Source string
	// Sources are the ARNs of the queues whose consumer Key and Store are of: the messages of other queues are judged by its records
	// otherwise. Those have a Problem, and no operation selects them. Default: all queues.
	Sources []string
	// NotDeadLetter accepts a queue that no queue names as its dead-letter queue: one that only hosts send to. Default: false, it
	// is refused.
	NotDeadLetter bool
	// SpendReceives accepts that a message may be moved on because it was received: the queue has a redrive policy of its own.
	// Default: false, operations that receive refuse such a queue.
	SpendReceives bool
	// Hold is for how long a message is hidden at most, should the process be killed. An operation that deletes messages extends it
	// after half of it; a listing reads for 5 s less. Default: 60 s, of a listing 60 s for each 10,000 messages that ListOptions.Limit
	// and the queue's count allow, or part of these. Limits: 10 s to 12 h; a part of a second counts as a whole one.
	Hold time.Duration
}

// badField returns a problem of an option.
func badField(field, format string, args ...any) error {
	return &sqsonce.OptionError{Package: "ops", Field: field, Problem: fmt.Sprintf(format, args...)}
}

// resolve sets the defaults and reports everything that cannot be used.
func (o *Options) resolve(c Client, dlqURL string) error {
	var errs []error
	if host.IsNil(c) {
		errs = append(errs, badField("client", "is nil"))
	}
	if problem := host.QueueURLProblem(dlqURL); problem != "" {
		errs = append(errs, badField("queue URL", "%s", problem))
	}
	if o.Store != nil && host.IsNil(o.Store) {
		errs = append(errs, badField("Options.Store", "is a nil %T", o.Store))
	}
	if o.Store != nil && o.Key == nil {
		errs = append(errs, badField("Options.Key", "is nil, must be set where Options.Store is: the Key of a dedup.Once"))
	}
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
	for i, arn := range o.Sources {
		if _, err := host.ParseQueueARN(arn); err != nil {
			errs = append(errs, badField(fmt.Sprintf("Options.Sources[%d]", i), "is %.256q, must be a queue's ARN", arn))
		}
	}
	return errors.Join(errs...)
}

// Errors that a program may act on. The text of any other error says what to do.
var (
	// ErrBusy says that nothing was done, since another redrive or restore runs, or one of AWS's. Try again when that has ended.
	ErrBusy = opserr.ErrBusy
	// ErrNoRecord does not say that the event never ran: a consumer with another key function or store has its record elsewhere.
	ErrNoRecord = errors.New("no record")
	// ErrState says that a message is left because of the state of its event.
	ErrState = errors.New("not sent in the state of its event")
	// ErrStopped says that a redrive has stopped, since redriven events fail again. Messages that it has not sent are where they were.
	ErrStopped = opserr.ErrStopped
	// ErrReopened says that a replay has stopped on its way. No consumer may have run the event meanwhile.
	ErrReopened = errors.New("ops: the event's record is reopened, and SQS has acknowledged no copy: any delivery runs it; replay the message again to go on")
)
