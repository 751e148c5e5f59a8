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
	n     int
	again int       // those that may have hit a message of an earlier one
	first time.Time // when the first one was sent
	last  time.Time // when the last one of them ended
}

const (
	manyLost      = 3 // receives in a row, though SQS answers other calls, before their delays grow
	mostAfterLost = 10 * time.Minute
)

// add takes note of a receive that was sent at a time and has ended now. Those that were under way together count once.
func (p *lostPolls) add(sent, now time.Time, visibility time.Duration) {
	if p.n > 0 && !sent.After(p.last) {
		return
	}
	if p.n++; p.n == 1 {
		p.first = sent
	}
	if p.last = now; p.n >= manyLost || sent.Sub(p.first) >= visibility {
		p.again++
	}
}

// delay is a visibility timeout after manyLost receives, or one that may have hit a message of an earlier one, and four times as long with
// each further one: only a receive can tell whether receives are answered again, and it may hit the same message each time. So
// maxReceiveCount 5 outlasts 20 min.
func (p *lostPolls) delay(visibility time.Duration) time.Duration {
	if p.again == 0 {
		return 0
	}
	return min(visibility<<(2*min(p.again-1, 5)), mostAfterLost)
}

// beginPoll sends a receive, after the call that costs no message anything where receives are without an answer.
func (l *loop) beginPoll(p *poll) {
	if l.polling.lost.n == 0 {
		l.receive(p)
		return
	}
	l.call(func() event { return pollAsked{p, l.askForAnswer(l.pollCtx)} })
}

// pollAsked says whether SQS answers, before a receive.
type pollAsked struct {
	poll *poll
	err  error
}

func (l *loop) pollAsked(e pollAsked) {
	closed := l.stopping.begun || l.control.closed()
	switch p := e.poll; {
	case e.err != nil:
		l.receiveFailed(receiveFailed{p, &unsentError{e.err}})
	case p.lost && l.mayRepeat(p, 0), !p.lost && !closed:
		l.receive(p)
	default:
		l.endPoll(p)
	}
}

// mayRepeat says whether a FIFO attempt whose answer was lost is sent again after delay: it may have hidden messages, and with them their
// groups. With its ID it gets the same messages, while they are hidden. Later it would take a receive of each of ten messages. After
// an answer the ID cannot be used again.
func (l *loop) mayRepeat(p *poll, delay time.Duration) bool {
	hidden := min(l.opts.VisibilityTimeout-answerMargin(l.opts.VisibilityTimeout), attemptWindow)
	return p.attempt != "" && p.lost && l.polling.lost.n < manyLost && elapsed(l.now(), p.began)+delay < hidden && l.pollCtx.Err() == nil
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
