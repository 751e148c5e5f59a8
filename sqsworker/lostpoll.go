package sqsworker

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// A receive without an answer may have cost ten messages a receive each, and so may all that follow it. So the worker first makes a
// call that costs no message anything. Then it receives one message at a time, until a receive is answered. Protocol, 17.15e.

// lostPolls counts receives without an answer, in a row.
type lostPolls struct {
	n    int
	last time.Time // when the last one of them ended
}

const (
	manyLost      = 3 // receives in a row, though SQS answers other calls, before their delays grow
	mostAfterLost = 10 * time.Minute
)

// add takes note of a receive that was sent at a time and has ended now. Those that were under way together count once.
func (p *lostPolls) add(sent, now time.Time) {
	if p.n == 0 || sent.After(p.last) {
		p.n++
		p.last = now
	}
}

// delay is a visibility timeout after manyLost receives, and four times as long with each further one: only a receive can tell
// whether receives are answered again, and it may hit the same message each time. So maxReceiveCount 5 outlasts 20 min.
func (p *lostPolls) delay(visibility time.Duration) time.Duration {
	if p.n < manyLost {
		return 0
	}
	return min(visibility<<(2*min(p.n-manyLost, 5)), mostAfterLost)
}

// askForAnswer returns nil when SQS answers, whatever it says. Without a client that passes options on that is not known.
func (w *Worker) askForAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := w.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &w.queueURL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	}, singleAttempt)
	if sdkhttp.Unanswered(err) {
		return err
	}
	return nil
}
