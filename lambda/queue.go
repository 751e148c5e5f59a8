package lambda

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// leastVisibility, in function timeouts, and leastReceives are Lambda's rules for a queue. With less, messages are received
	// again while a throttled or slow invocation still has them, and reach the dead-letter queue without a run.
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
	leastVisibility = 6
	leastReceives   = 5
)

// queueAttributes are the attributes of the function's queue that the host uses. Zero means not known, or without a redrive
// policy.
type queueAttributes struct {
	visibility    time.Duration
	retention     time.Duration
	maxReceives   int
	deadLetterARN string
}

// readAgain is how soon the host reads the attributes again if SQS contradicts them.
const readAgain = 30 * time.Second

// knownQueue is the result of a read of a queue, and its time.
type knownQueue struct {
	queueAttributes
	read         time.Time
	contradicted bool // since then
}

// fresh reports whether the attributes need not be read again.
func (k knownQueue) fresh() bool {
	age := time.Since(k.read)
	return age < readAgain || age < host.Believed && !k.contradicted
}

// queueRead is a read of the attributes in an invocation.
type queueRead struct {
	done chan struct{} // closed when they are there
	queueAttributes
}

// attributes returns the attributes of the function's queue. SQS is asked when a message needs them, at most once in an invocation,
// and in a process every 5 min; again where it contradicts them. After an error other than a denied access the next invocation asks again.
func (v *invocation) attributes(ctx context.Context) queueAttributes {
	r := &queueRead{done: make(chan struct{})}
	for !v.queue.CompareAndSwap(nil, r) {
		if other := v.queue.Load(); other != nil { // else contradicted has just dropped it
			<-other.done // not a sync.Once: in a bubble of testing/synctest no time passes while a goroutine waits for a mutex
			return other.queueAttributes
		}
	}
	defer close(r.done)
	r.queueAttributes = v.readAttributes(ctx)
	return r.queueAttributes
}

// known returns what the process has read of the function's queue.
func (v *invocation) known() (k knownQueue, ok bool) {
	stored, _ := v.queues.Load(v.records[0].QueueARN)
	k, ok = stored.(knownQueue)
	return k, ok
}

// contradicted has the attributes read again, since SQS has answered against them: it refuses a send to the dead-letter queue, or hands
// out a message more often than it may.
func (v *invocation) contradicted() {
	k, ok := v.known()
	if !ok {
		return
	}
	doubted := k
	doubted.contradicted = true
	v.queues.CompareAndSwap(v.records[0].QueueARN, k, doubted)
	if r := v.queue.Load(); r != nil && !doubted.fresh() {
		v.queue.CompareAndSwap(r, nil)
	}
}

// policy returns the attributes for a message, by whose receive count they may be out of date.
func (v *invocation) policy(record int) queueAttributes {
	a := v.attributes(v.sendCtx)
	if a.maxReceives == 0 || v.records[record].receiveCount() <= a.maxReceives || v.movedHere(record) {
		return a
	}
	v.contradicted()
	return v.attributes(v.sendCtx)
}

func (v *invocation) readAttributes(ctx context.Context) queueAttributes {
	arn, began := v.records[0].QueueARN, time.Now()
	known, isKnown := v.known()
	if isKnown && known.fresh() {
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
	v.queues.Store(arn, knownQueue{queueAttributes: a, read: began})
	if !isKnown || a != known.queueAttributes {
		v.checkQueue(a)
	}
	return a
}

// errNoAttributes is an answer that says nothing, also not that there is no redrive policy.
var errNoAttributes = errors.New("lambda: GetQueueAttributes was answered without attributes: the endpoint or a proxy is at fault")

func (v *invocation) getAttributes(ctx context.Context, arn string) (a queueAttributes, err error) {
	url, err := v.queueURL(ctx, arn)
	if err != nil {
		return a, err
	}
	out, err := v.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameVisibilityTimeout, sqstypes.QueueAttributeNameMessageRetentionPeriod, sqstypes.QueueAttributeNameRedrivePolicy,
	}})
	if err == nil && len(out.Attributes) == 0 {
		err = errNoAttributes
	}
	if err != nil {
		return a, err
	}
	seconds := func(name sqstypes.QueueAttributeName) time.Duration {
		s, _ := strconv.Atoi(out.Attributes[string(name)]) // 0: not known
		return time.Duration(s) * time.Second
	}
	a.visibility = seconds(sqstypes.QueueAttributeNameVisibilityTimeout)
	a.retention = seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
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
	if a.visibility > 0 && a.maxReceives == 0 { // else the attributes are not known
		warn("queue.RedrivePolicy", "none that can be read", "a message that always fails is delivered again until its retention ends: sqsonce doctor --queue "+v.records[0].QueueARN+" prints the command that sets one")
	}
	if a.maxReceives > 0 && a.maxReceives < leastReceives {
		warn("queue.RedrivePolicy.maxReceiveCount", a.maxReceives, "less than 5: a throttled invocation, a crash or an outage costs a receive, and messages reach the dead-letter queue untried")
	}
}
