package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/host"
)

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
