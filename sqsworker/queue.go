package sqsworker

import (
	"context"
	"encoding/json"
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
