package lambda

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// leastVisibility, in function timeouts, and leastReceives are what Lambda asks of a queue: with less, messages are
	// received again while a throttled or slow invocation still has them, and reach the dead-letter queue untried.
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
	leastVisibility = 6
	leastReceives   = 5
)

// queueAttributes are those of the function's queue that the host uses. Zero: not known, or no redrive policy.
type queueAttributes struct {
	visibility    time.Duration
	maxReceives   int
	deadLetterARN string
}

// believed is how long what was read of a queue is believed: policies and dead-letter queues change while processes live.
const believed = 5 * time.Minute

// knownQueue is what was read of a queue, and when.
type knownQueue struct {
	queueAttributes
	read time.Time
}

// attributes returns the attributes of the function's queue. SQS is asked when a message needs them, at most once in an invocation,
// and in a process every 5 min. After an error other than a denied access the next invocation asks again.
func (v *invocation) attributes(ctx context.Context) queueAttributes {
	if v.queueAsked.CompareAndSwap(false, true) {
		v.queue = v.readAttributes(ctx)
		close(v.queueRead)
	}
	<-v.queueRead // not a sync.Once: in a bubble of testing/synctest no time passes while a goroutine waits for a mutex
	return v.queue
}

func (v *invocation) readAttributes(ctx context.Context) queueAttributes {
	arn := v.records[0].EventSourceARN
	stored, _ := v.queues.Load(arn)
	known, isKnown := stored.(knownQueue)
	began := time.Now()
	if isKnown && began.Sub(known.read) < believed {
		return known.queueAttributes
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a, err := v.getAttributes(ctx, arn)
	if err != nil {
		a = known.queueAttributes
		denied := isAccessDenied(err)
		if !denied || !isKnown {
			v.log.WarnContext(ctx, "lambda: queue attributes not read: visibility timeout and maxReceiveCount are not known", keyError, err)
		}
		if !denied {
			return a
		}
	}
	v.queues.Store(arn, knownQueue{a, began})
	if !isKnown || a != known.queueAttributes {
		v.checkQueue(a)
	}
	return a
}

func (v *invocation) getAttributes(ctx context.Context, arn string) (a queueAttributes, err error) {
	url, err := v.queueURL(ctx, arn)
	if err != nil {
		return a, err
	}
	out, err := v.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameVisibilityTimeout, sqstypes.QueueAttributeNameRedrivePolicy,
	}})
	if err != nil {
		return a, err
	}
	if s, err := strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)]); err == nil {
		a.visibility = time.Duration(s) * time.Second
	}
	// A queue without a policy, or with one that cannot be read, has no last receive: the host dead-letters nothing for it.
	a.deadLetterARN, a.maxReceives, _ = host.ParseRedrivePolicy(out.Attributes[string(sqstypes.QueueAttributeNameRedrivePolicy)])
	return a, nil
}

// checkQueue logs each attribute that does not fit the function.
func (v *invocation) checkQueue(a queueAttributes) {
	warn := func(setting string, value any, reason string) {
		v.log.WarnContext(v.ctx, "lambda: questionable setting", "setting", setting, "value", value, "reason", reason)
	}
	// Some of the function's timeout has passed when the invocation begins: the rest is never more than the timeout.
	if least := leastVisibility * v.remaining; a.visibility > 0 && a.visibility < least {
		warn("queue.VisibilityTimeout", a.visibility, "less than 6 times the function's timeout: messages are received again while an invocation has them")
	}
	if a.maxReceives > 0 && a.maxReceives < leastReceives {
		warn("queue.RedrivePolicy.maxReceiveCount", a.maxReceives, "less than 5: a throttled invocation, a crash or an outage costs a receive, and messages reach the dead-letter queue untried")
	}
}
