package sqsworker

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// queue is what Run learns of its queue before the first receive.
type queue struct {
	arn         string
	maxReceives int    // of the redrive policy; 0: none, SQS delivers for ever
	deadLetter  string // URL; "": not known
}

// unknownMaxReceives is assumed where the redrive policy may not be read: low, so that messages are rather kept than
// driven to the dead-letter queue.
const unknownMaxReceives = 3

func (q *queue) hasDLQ() bool { return q.deadLetter != "" }

// inspect reads the queue's attributes. It goes on trying while SQS cannot be reached: the ARN is part of the key of
// events without an ID, and a worker that ran with a guess would not find the records made under the real one.
func (w *Worker) inspect(ctx context.Context) (queue, error) {
	for try := 1; ; try++ {
		q, err := w.readQueue(ctx)
		if err == nil || isFatal(err) {
			return q, err
		}
		if ctx.Err() != nil {
			return queue{}, nil
		}
		delay := host.Jitter(100*time.Millisecond, 20*time.Second, try)
		w.log.Warn("sqsworker: reading the queue's attributes", keyError, err, keyDelay, delay)
		select {
		case <-ctx.Done():
			return queue{}, nil
		case <-w.hurry:
			return queue{}, nil
		case <-time.After(delay):
		}
	}
}

func (w *Worker) readQueue(ctx context.Context) (queue, error) {
	q := queue{deadLetter: w.opts.DeadLetterQueue}
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	a, err := w.attributesOf(ctx, w.queueURL)
	if isAccessDenied(err) {
		w.log.Warn("sqsworker: sqs:GetQueueAttributes is not allowed: the redrive policy is not known", keyError, err)
		q.maxReceives = unknownMaxReceives
		if arn, ok := host.ARNOfURL(w.queueURL); ok {
			q.arn = arn.String()
		}
		w.advise(ctx, &q, nil)
		return q, nil
	}
	if err != nil {
		return q, err
	}
	if err := w.readRedrive(ctx, &q, a); err != nil {
		return q, err
	}
	w.advise(ctx, &q, a)
	return q, nil
}

// readRedrive takes from the queue's attributes what decides about failures.
func (w *Worker) readRedrive(ctx context.Context, q *queue, a attributes) error {
	q.arn = a.get(sqstypes.QueueAttributeNameQueueArn)
	var policy struct {
		Target string      `json:"deadLetterTargetArn"`
		Max    json.Number `json:"maxReceiveCount"` // written as a number or as a string
	}
	text := a.get(sqstypes.QueueAttributeNameRedrivePolicy)
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		w.log.Warn("sqsworker: redrive policy not understood", keyError, err)
		q.maxReceives = unknownMaxReceives
		return nil
	}
	if n, err := policy.Max.Int64(); err == nil && n > 0 {
		q.maxReceives = int(n)
	} else {
		q.maxReceives = unknownMaxReceives
	}
	if q.deadLetter != "" {
		return nil
	}
	var err error
	q.deadLetter, err = w.deadLetterURL(ctx, policy.Target)
	return err
}

// deadLetterURL finds the URL of the queue with that ARN. SQS wants a dead-letter queue in the account and region of its
// queue, so where it may not be asked the URLs differ in the name alone.
func (w *Worker) deadLetterURL(ctx context.Context, arn string) (string, error) {
	q, err := host.ParseQueueARN(arn)
	if err != nil {
		w.log.Warn("sqsworker: redrive policy without a queue's ARN", keyError, err)
		return "", nil
	}
	out, err := w.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.Name, QueueOwnerAWSAccountId: &q.Account}, once)
	switch {
	case err == nil:
		return aws.ToString(out.QueueUrl), nil
	case isAccessDenied(err):
		return w.queueURL[:strings.LastIndexByte(w.queueURL, '/')+1] + q.Name, nil
	case isMissing(err):
		w.log.Error("sqsworker: the dead-letter queue of the redrive policy does not exist", keyReason, arn)
		return "", nil
	default:
		return "", err
	}
}

// attributes are a queue's, by name.
type attributes map[string]string

func (a attributes) get(name sqstypes.QueueAttributeName) string { return a[string(name)] }

// seconds returns an attribute that is a number of seconds, and 0 where it is missing.
func (a attributes) seconds(name sqstypes.QueueAttributeName) time.Duration {
	n, err := strconv.Atoi(a.get(name))
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

// attributesOf reads all attributes of a queue. By name SQS refuses those of the other kind of queue.
func (w *Worker) attributesOf(ctx context.Context, queueURL string) (attributes, error) {
	out, err := w.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &queueURL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	}, once)
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

const (
	shortVisibility = 5 * time.Second
	shortWait       = 5 * time.Second
	fewReceives     = 3
)

// advise logs what is unwise in the options and the queue, one line each. None of it keeps the worker from running: what
// does is an error of New, or of the call that SQS refuses.
func (w *Worker) advise(ctx context.Context, q *queue, a attributes) {
	o := &w.opts
	w.unwise(o.Visibility < shortVisibility, "Options.Visibility", o.Visibility,
		"an outage or a pause of a few seconds ends every lease, and with it the handlers' contexts")
	w.unwise(o.HandlerTimeout > o.MaxExtension, "Options.HandlerTimeout", o.HandlerTimeout,
		"handlers are cancelled with ErrLeaseLost at MaxExtension, before their timeout")
	w.unwise(o.Wait < shortWait, "Options.Wait", o.Wait,
		"an idle worker asks so often, and each receive costs as much as one that brings ten messages")
	w.unwise(o.StopTimeout < o.Wait+5*time.Second, "Options.StopTimeout", o.StopTimeout,
		"shorter than Wait + 5 s: a stop may leave messages hidden until their visibility timeout")
	w.unwise(o.InFlight < o.Concurrency, "Options.InFlight", o.InFlight,
		"below Concurrency: so many handlers never run at once")
	w.unwise(!w.fifo && o.FIFORetries != defaultFIFORetries, "Options.FIFORetries", o.FIFORetries,
		"without effect: the queue's URL does not end in .fifo")
	if a == nil {
		return
	}
	w.unwise((a.get(sqstypes.QueueAttributeNameFifoQueue) == "true") != w.fifo, "queue.FifoQueue",
		a.get(sqstypes.QueueAttributeNameFifoQueue), "not the kind that the URL says: by the URL alone the worker keeps groups in order")
	w.unwise(q.maxReceives == 0, "queue.RedrivePolicy", "none",
		"a message that always fails is delivered again until its retention ends")
	w.unwise(q.maxReceives > 0 && q.maxReceives < fewReceives, "queue.RedrivePolicy.maxReceiveCount", q.maxReceives,
		"a crash costs a receive too: messages whose handler never failed reach the dead-letter queue")
	if q.hasDLQ() {
		w.adviseDeadLetter(ctx, q, a)
	}
}

// adviseDeadLetter looks at the dead-letter queue. It needs a permission that the worker does not need otherwise, so
// that not to have it is no more than a line for who looks for it.
func (w *Worker) adviseDeadLetter(ctx context.Context, q *queue, a attributes) {
	dead, err := w.attributesOf(ctx, q.deadLetter)
	switch {
	case isMissing(err):
		w.unwise(true, "Options.DeadLetterQueue", q.deadLetter, "does not exist: rejected messages are delivered again")
		return
	case err != nil:
		w.log.Debug("sqsworker: the dead-letter queue's attributes were not read", keyError, err)
		return
	}
	// A message that a standard queue's redrive policy moves keeps the time it was sent: what it waited in its queue is
	// taken off what it may wait in the other. A FIFO queue's gets a new time. Queues made without a thought keep messages
	// for four days both, which leaves a message that fails from the first some days there: no reason for a line.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
	keep := a.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	deadKeep := dead.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	w.unwise(!w.fifo && keep > 0 && deadKeep > 0 && deadKeep < keep, "deadLetterQueue.MessageRetentionPeriod", deadKeep,
		"shorter than the queue's: counted from when a message was sent, it may be over when the message arrives")
}

func (w *Worker) unwise(bad bool, setting string, value any, reason string) {
	if bad {
		w.log.Warn("sqsworker: unwise setting", keySetting, setting, keyValue, value, keyReason, reason)
	}
}
