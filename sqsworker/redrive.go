package sqsworker

import (
	"cmp"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// SQS moves a message at its last receive to the dead-letter queue of the redrive policy, if that exists. If it does not, SQS
// hands the message out again, also past maxReceiveCount. So the head of a FIFO group may be left to SQS, and the messages
// behind it may run, only where the dead-letter queue was just seen to exist. Until then the group is held.

// dlqConfirmed says that SQS has answered with the redrive policy and that its dead-letter queue exists, not longer ago than is
// believed, and that no answer to a send has contradicted.
func (l *loop) dlqConfirmed() bool {
	return !l.queue.guessed && !l.queue.confirmed.IsZero() && elapsed(l.now(), l.queue.confirmed) <= host.Believed+readAgainAfter && !l.deadLetters.missing
}

// movedNext says that SQS moves the message when it is received once more, and never hands it out again. A count beyond
// maxReceiveCount shows that SQS has not moved it. That of a message that came from another queue counts the receives there too.
func (l *loop) movedNext(d *delivery) bool {
	return l.dlqConfirmed() && !d.moved && d.lease.count == l.queue.maxReceives && elapsed(l.now(), l.queue.confirmed) < askAgainAfter
}

// mustAwaitDLQ says that a group may not be given back: it would lose receives, and with the last one the messages behind the
// head could follow it to the dead-letter queue without a run, as soon as that exists.
func (l *loop) mustAwaitDLQ(d *delivery) bool {
	return l.queue.maxReceives > 0 && (l.atLastReceive(d) || !l.dlqConfirmed())
}

// awaitDLQ holds a group whose head has been run often enough until the dead-letter queue takes the head, or will get it from
// SQS. The head is run again meanwhile, after its backoff.
func (l *loop) awaitDLQ(d *delivery, delay time.Duration) {
	l.holdParked(d, heldDLQ, delay, nil)
	l.contradicted()
}

func (l *loop) awaiting() (heads []*delivery) {
	for _, g := range l.groups {
		if g.head != nil && g.head.state == held && g.head.heldFor == heldDLQ {
			heads = append(heads, g.head)
		}
	}
	return heads
}

// reviewAwaiting sends the heads that wait to the dead-letter queue, where one is known. err is that of the read before.
func (l *loop) reviewAwaiting(err error) {
	for _, d := range l.awaiting() {
		if !l.dlqConfirmed() && !l.reads.waitLogged {
			l.reads.waitLogged = true
			l.log.WarnContext(d.context(), "sqsworker: a FIFO group waits behind a message that failed too often, because the dead-letter queue is missing or unknown: create it or change the redrive policy, and check the permissions on both queues",
				d.about("dlq", cmp.Or(l.queue.deadLetter, l.queue.target), keyError, err)...)
		}
		if l.queue.hasDLQ() {
			r := d.result
			r.delay = max(0, d.retry.at.Sub(l.now()))
			l.setState(d, deciding)
			l.reject(d, r)
		}
	}
}
