package sqsworker

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
	"github.com/sqsonce/sqsonce/internal/host"
)

// deadLetters is the worker's knowledge of its dead-letter queue.
type deadLetters struct {
	missingLogged bool      // that there is none
	missing       bool      // by the answer to a send: only one that succeeds shows that it exists again
	refuses       bool      // it did not take the last message
	askAgain      time.Time // while it refuses
}

// askAgainAfter is how long the worker leaves alone a dead-letter queue that did not accept a message. Each message for it fails
// meanwhile, as without a dead-letter queue.
const askAgainAfter = 30 * time.Second

// reject sends the message to the dead-letter queue, and deletes it when that is confirmed. In this order a crash in
// between leaves the message in both queues; in the other order it would be lost.
func (l *loop) reject(d *delivery, r result) {
	if !l.queue.hasDLQ() {
		if !l.deadLetters.missingLogged {
			l.deadLetters.missingLogged = true
			l.log.ErrorContext(d.context(), "sqsworker: message rejected, but its dead-letter queue is unknown: SQS delivers the message again",
				d.about(keyError, errNoDLQ)...)
		}
		l.notSent(d, r)
		return
	}
	if l.deadLetters.refuses {
		if l.now().Before(l.deadLetters.askAgain) {
			l.notSent(d, r)
			return
		}
		l.deadLetters.askAgain = l.now().Add(askAgainAfter)
	}
	if !d.lease.live(l.now()) {
		l.loseLease(d, "visibility timeout passed before the send to the dead-letter queue", nil)
		l.settleFailed(d, r)
		return
	}
	l.setState(d, rejecting)
	queueURL := l.queue.deadLetter
	l.call(func() event {
		ctx, cancel := context.WithTimeout(l.callCtx, sendTimeout)
		defer cancel()
		ctx, done := l.hooks.begin(ctx, Call{
			QueueURL: queueURL, Purpose: "reject", Entries: 1,
			Messages: []*sqsonce.Message{d.m},
		})
		err := l.sendToDeadLetter(ctx, queueURL, d, r)
		done(results{err}.callResult(err))
		l.settle(d, r, err == nil)
		return deadLettered{d, r, queueURL, err}
	})
}

// sendToDeadLetter sends a copy of the message with the reason.
func (l *loop) sendToDeadLetter(ctx context.Context, queueURL string, d *delivery, r result) error {
	dropped, err := deadletter.Send(ctx, l.client, queueURL, d.m, r.key, r.recordKey, host.Described(l.opts.ErrorText, r.err))
	for _, name := range dropped {
		l.log.WarnContext(d.context(), "sqsworker: attribute not added to the dead-lettered message: the message would exceed a limit of SQS",
			d.event(keyAttribute, name)...)
	}
	return err
}

// deadLettered is the answer to a send to the dead-letter queue.
type deadLettered struct {
	d        *delivery
	result   result // of the handler
	queueURL string
	err      error // of the send
}

func (l *loop) deadLettered(e deadLettered) {
	d := e.d
	if e.queueURL == l.queue.deadLetter { // a read may have replaced it meanwhile
		l.noteDeadLetters(e.err)
	}
	if e.err != nil {
		l.log.ErrorContext(d.context(), "sqsworker: message not sent to the dead-letter queue: it is delivered again", d.about(keyError, e.err)...)
	} else {
		l.counters.sent.Add(1)
		l.log.InfoContext(d.context(), "sqsworker: message sent to the dead-letter queue", d.about(keyReason, e.result.err)...)
	}
	switch {
	case d.lease.lost:
		if e.err == nil {
			l.finishUndeleted(d)
		}
		l.remove(d)
	case e.err != nil:
		d.tooLarge = deadletter.IsTooLarge(e.err)
		l.setState(d, deciding) // so that it is removed where its lease has ended unnoticed
		l.notSent(d, e.result)
	default:
		d.rejected = true
		l.delete(d)
	}
}

// noteDeadLetters notes what the dead-letter queue answered to a send.
func (l *loop) noteDeadLetters(err error) {
	q := &l.deadLetters
	q.refuses = err != nil && !deadletter.IsTooLarge(err) // else only that message
	switch {
	case q.refuses:
		q.missing, q.askAgain = q.missing || isMissing(err), l.now().Add(askAgainAfter)
		if !isOutcomeUnknown(err) && !isThrottle(err) {
			l.contradicted()
		}
	default:
		q.missing, l.reads.waitLogged = false, false
	}
}

// notSent treats a rejected message as any other that failed.
func (l *loop) notSent(d *delivery, r result) {
	r.sendFailed = true
	l.settleFailed(d, r)
	if d.leaves != nil {
		l.staysBehind(d)
		return
	}
	l.failed(d, r)
}

// settleFailed tells middleware that the message is not in the dead-letter queue. Middleware may call a store, so that it
// runs on another goroutine. Settling twice does nothing.
func (l *loop) settleFailed(d *delivery, r result) {
	l.calls.Go(func() { l.settle(d, r, false) })
}
