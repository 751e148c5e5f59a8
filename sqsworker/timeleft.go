package sqsworker

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// SQS deletes a message when its retention is over, also one that waits for its next attempt, and tells nobody. So no delay reaches into
// the last part of a message's life, and what cannot run before that goes to the dead-letter queue, with this reason. Protocol, 17.15.

var errExpires = errors.New("sqsworker: the message's retention ends before it can run again")

// timeLeft is how long a message can wait for its next attempt, by SQS's clock. known is false where the retention, the message's age or
// SQS's clock is not known.
func (l *loop) timeLeft(d *delivery) (left time.Duration, known bool) {
	if l.queue.retention == 0 || d.m.SentAt.IsZero() || l.clock.date.IsZero() {
		return 0, false
	}
	return d.m.SentAt.Add(l.queue.retention - host.LeastLeft(l.opts.VisibilityTimeout)).Sub(l.clock.latest(l.now())), true
}

// inTime shortens a delay, so that the message can run once more. It returns false where that is too late and the message is on its way
// to the dead-letter queue: all but an event in progress elsewhere, which may succeed there.
func (l *loop) inTime(d *delivery, delay *time.Duration) bool {
	left, known := l.timeLeft(d)
	switch {
	case !known || *delay <= left || l.stopping.begun || d.damaged:
		return true
	case left > 0:
		*delay = left
		return true
	case l.queue.hasDLQ() && !d.result.sendFailed && d.result.outcome != sqsonce.OutcomeInProgress:
		l.expire(d)
		return false
	}
	*delay = min(*delay, l.opts.VisibilityTimeout/2)
	l.logExpires(d)
	return true
}

func (l *loop) logExpires(d *delivery) {
	if !d.expiring {
		d.expiring = true
		l.log.WarnContext(d.context(), "sqsworker: SQS deletes the message soon, when its retention ends, and does not move it to the dead-letter queue", d.about()...)
	}
}

// expire sends a message to the dead-letter queue because of its retention.
func (l *loop) expire(d *delivery) {
	r := d.result
	why := r.err
	if d.runs == 0 {
		r.handler = nil
		if l.needs.keepUnrun() {
			why = l.needs.err
		}
	}
	r.outcome, r.err = sqsonce.OutcomeRejected, errExpires
	r.delay = l.opts.VisibilityTimeout / 2 // where the dead-letter queue refuses it
	if why != nil {
		r.err = fmt.Errorf("%w: %w", errExpires, why)
	}
	l.setState(d, deciding)
	l.reject(d, r)
}

// expireHeld sends what waits because of an outage to the dead-letter queue when its time is over. What only waits for a slot may run yet, and
// an event in progress elsewhere is another delivery's.
func (l *loop) expireHeld() {
	if !l.queue.hasDLQ() {
		return
	}
	for _, d := range l.kept() {
		waits := l.needs.state == needsDown || l.isAside(d) && (l.needs.keepUnrun() || d.due)
		if left, known := l.timeLeft(d); waits && known && left <= 0 && d.result.outcome != sqsonce.OutcomeInProgress {
			l.expire(d)
		}
	}
}
