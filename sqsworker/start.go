package sqsworker

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

const (
	// attributesPatience is how long the start waits for the queue's attributes. Receives and deletes may work without them. Where no
	// request could be sent at all in that time they can't, and Run ends.
	attributesPatience = 30 * time.Second
	// readAgainAfter is how often the worker asks for the attributes after that, until SQS answers.
	readAgainAfter = time.Minute
	// attributesLine is how often a line says that they are not read yet.
	attributesLine = time.Minute
)

// inspect reads the queue's attributes before the first receive. Where they may not be read, or are not answered within
// attributesPatience, the worker begins with a guess: see age.go. It waits longer if its URL does not tell the ARN: that is part of
// the key of events without an ID.
//
// Where no request could be sent in that time it returns why. Nothing is received yet, so a restart costs no receive. When the worker
// is stopped meanwhile it returns no error: the stop is clean.
func (w *Worker) inspect(ctx context.Context) (queue, error) {
	w.checkOptions()
	var signed signature
	began := w.now()
	w.waitFor("GetQueueAttributes has not been answered yet")
	sent := false
	var logged time.Time
	for try := 1; ; try++ {
		asked := w.now()
		q, err := w.readQueue(ctx)
		switch {
		case err == nil:
			return q, nil
		case isMissing(err):
			return queue{}, fmt.Errorf("%s: create the queue, or fix its URL: %w", w.missing(), err)
		case isUnsent(err) && w.noRegion():
			return queue{}, fmt.Errorf("%s: %w", sdkhttp.Cure("", err), err)
		case signed.ends(err, asked, w.now()):
			return queue{}, err
		case ctx.Err() != nil:
			return queue{}, nil
		case isAccessDenied(err):
			w.warnNotReadable(err)
			q := w.guess()
			q.denied = true
			return q, nil
		}
		if isUnsent(err) {
			err = fmt.Errorf("%s: %w", sdkhttp.Cure("of the URL", err), err)
		} else {
			sent = true
		}
		left := attributesPatience - elapsed(w.now(), began)
		if left <= 0 && !sent {
			return queue{}, fmt.Errorf("no request to SQS could be sent for %v: %w", attributesPatience, err)
		}
		w.waitFor(fmt.Sprintf("GetQueueAttributes fails: %v", err))
		delay := host.Jitter(100*time.Millisecond, mostDelayAfter(err), try)
		if q := w.guess(); q.arn != "" {
			if left <= 0 {
				w.log.WarnContext(ctx, "sqsworker: queue attributes not read: the redrive policy is not known, receiving without it",
					keyError, err, keyDelay, readAgainAfter)
				return q, nil
			}
		}
		if left > 0 {
			delay = min(delay, left)
		}
		if isDue(&logged, w.now(), attributesLine) {
			w.log.WarnContext(ctx, "sqsworker: queue attributes not read: the worker reads them again", keyError, err, keyDelay, delay)
		}
		select {
		case <-ctx.Done():
			return queue{}, nil
		case <-time.After(delay):
		}
	}
}

// missing says which queue does not exist.
func (w *Worker) missing() string {
	if arn, ok := host.ARNOfURL(w.queueURL); ok {
		return fmt.Sprintf("queue %s does not exist in account %s, Region %s", arn.Name, arn.Account, arn.Region)
	}
	return "queue " + host.QueueName(w.queueURL) + " does not exist"
}

// noRegion reports that the SDK's client has no Region.
func (w *Worker) noRegion() bool {
	c, ok := w.client.(safeClient).client.(*sqs.Client)
	return ok && c.Options().Region == ""
}

// waitFor sets why nothing is received yet, for /ready.
func (w *Worker) waitFor(reason string) { w.waitsFor.Store(&reason) }

func (w *Worker) warnNotReadable(err error) {
	w.log.Warn("sqsworker: queue attributes cannot be read (sqs:GetQueueAttributes): the redrive policy is not known", keyError, err)
}
