package doctor

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

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
	"github.com/sqsonce/sqsonce/internal/host"
)

func queueChecks() []check {
	return []check{
		{[]string{"Q1"}, checkReachable},
		{[]string{"Q2"}, checkRedrivePolicy},
		{[]string{"Q3"}, checkDeadLetterQueue},
		{[]string{"Q4"}, checkDeadLetterRetention},
		{[]string{"Q5"}, checkRecordRetention},
		{[]string{"Q6"}, checkDeadLetterReaders},
		{[]string{"Q7"}, checkVisibility},
		{[]string{"Q8"}, checkFIFO},
		{[]string{"Q9"}, checkCrashes},
	}
}

// checkReachable is Q1.
func checkReachable(ctx context.Context, e *examination) []Finding {
	r := report{id: "Q1"}
	q, err := e.queue(ctx)
	name := host.QueueName(e.QueueURL)
	switch {
	case errors.Is(err, errNoClient), awserr.Denied(err), awserr.Busy(err):
		r.miss(err)
	case errors.As(err, new(*NoSuchQueue)):
		r.fail("name another queue, or set AWS_REGION or AWS_PROFILE. aws sqs list-queues lists the queues", "%v", err)
	case isMissing(err):
		r.fail("check the queue's name, the account of the credentials and AWS_REGION", "queue %s does not exist at %s", name, e.QueueURL)
	case err != nil:
		r.fail("check the network from here to SQS, and AWS_ENDPOINT_URL", "queue %s is not reachable: %s", name, reason(err))
	case (q.get(sqstypes.QueueAttributeNameFifoQueue) == "true") != q.fifo:
		r.fail("create it again: the name of a FIFO queue ends in .fifo, and only of a FIFO queue",
			"queue %s has the attribute FifoQueue=%q, which its name contradicts: hosts go by the name", name,
			q.get(sqstypes.QueueAttributeNameFifoQueue))
	default:
		return []Finding{r.finding("queue %s (%s) reachable, %d ms", name, kind(q.fifo), q.took.Milliseconds())}
	}
	return []Finding{r.finding("")}
}

// fewReceives is less than what Lambda's guide asks for: throttled and crashed invocations cost receives too.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
const fewReceives = 5

// checkRedrivePolicy is Q2.
func checkRedrivePolicy(ctx context.Context, e *examination) []Finding {
	r := report{id: "Q2"}
	q, err := e.queue(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	arn, most, err := e.redrive(ctx)
	switch {
	case errors.Is(err, errNoDLQ):
		r.fail(newDeadLetterQueue(q),
			"queue %s has no redrive policy: a message that always fails is delivered until its retention ends, and is then lost", q.name)
	case err != nil:
		r.fail(newDeadLetterQueue(q), "%v", err)
	case most == 0:
		r.fail(setRedrive(q, arn, fewReceives), "the redrive policy of %s has no maxReceiveCount that can be read", q.name)
	case most < fewReceives:
		r.warn(setRedrive(q, arn, fewReceives),
			"%s has maxReceiveCount %d, less than %d: crashes and throttles cost receives too, so that messages whose handler never failed reach %s",
			q.name, most, fewReceives, arn.Name)
	}
	return []Finding{r.finding("%s moves a message to %s after %d receives", q.name, arn.Name, most)}
}

// checkRecordRetention is Q5. It needs no table: a consumer whose records end too early runs an event again that is redriven late.
func checkRecordRetention(ctx context.Context, e *examination) []Finding {
	r := report{id: "Q5"}
	q, err := e.queue(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	own, err := q.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	// Unless the dead-letter queue's retention is known, the formula's result is the least that it can be.
	var dead time.Duration
	_, _, redriveErr := e.redrive(ctx)
	if !errors.Is(redriveErr, errNoDLQ) {
		d, err := e.deadLetterQueue(ctx)
		if err == nil {
			dead, err = d.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
		}
		r.miss(err)
	}
	longest := host.LongestReturn(q.fifo, own, !errors.Is(redriveErr, errNoDLQ), dead)
	retention := cmp.Or(e.Retention, host.DefaultRetention)
	if retention < longest {
		r.fail(fmt.Sprintf("set dedup.Options.Retention to %d * time.Hour or more", (longest+time.Hour-1)/time.Hour),
			"records are kept for %s, and a message of %s can come back %s after its first delivery, through its dead-letter queue and a redrive: its event then runs again",
			span(retention), q.name, span(longest))
	}
	return []Finding{r.finding("records are kept for %s, and a message of %s can come back for %s", span(retention), q.name, span(longest))}
}

// checkFIFO is Q8. It does not apply to standard queues.
func checkFIFO(ctx context.Context, e *examination) []Finding {
	if !host.IsFIFO(e.QueueURL) {
		return nil
	}
	r := report{id: "Q8"}
	q, err := e.queue(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	if q.get(sqstypes.QueueAttributeNameContentBasedDeduplication) == "true" {
		r.warn(setAttribute(q, sqstypes.QueueAttributeNameContentBasedDeduplication, "false"),
			"%s uses the hash of the body as deduplication ID, so that two events with the same body within 5 minutes are one message: let senders give a deduplication ID, then switch it off", q.name)
	}
	// High throughput needs both. SQS refuses this limit without the scope, so that the two differ only where something else answers.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/high-throughput-fifo.html
	limit, scope := q.get(sqstypes.QueueAttributeNameFifoThroughputLimit), q.get(sqstypes.QueueAttributeNameDeduplicationScope)
	if limit == "perMessageGroupId" && scope != "messageGroup" {
		r.warn(setAttribute(q, sqstypes.QueueAttributeNameDeduplicationScope, "messageGroup"),
			"%s has the throughput limit perMessageGroupId and the deduplication scope %q: without messageGroup it has no high throughput", q.name,
			scope)
	}
	return []Finding{r.finding("%s has no content-based deduplication; throughput limit %s, deduplication scope %s", q.name, limit, scope)}
}

func kind(fifo bool) string {
	if fifo {
		return "FIFO"
	}
	return "standard"
}

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
		return 0, fmt.Errorf("%s of %s is %.20q, not a number of seconds", name, q.name, q.get(name))
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
			return 0, fmt.Errorf("%s of %s is %.20q, not a number", name, q.name, q.get(name))
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
