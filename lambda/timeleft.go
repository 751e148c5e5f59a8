package lambda

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// SQS deletes a message when its retention is over. So no delay reaches into the last part of a message's life, and a message that cannot
// be delivered again before that goes to the dead-letter queue, with this reason. Protocol, 17.15.

var errExpires = errors.New("lambda: the message's retention ends before it can run again")

// lastRetry is until when a message that was sent then may be hidden. known is false where the retention or that time is not known.
func (a queueAttributes) lastRetry(sentAt time.Time) (at time.Time, known bool) {
	if a.retention == 0 || a.visibility == 0 || sentAt.IsZero() {
		return time.Time{}, false
	}
	return sentAt.Add(a.retention - host.LeastLeft(a.visibility)), true
}

// mayExpire reports whether a failed message is, or may be, delivered for the last time. It asks nobody. A message that is in progress
// elsewhere, or whose lease is lost, is another delivery's.
func (v *invocation) mayExpire(f failure) bool {
	if v.opts.Client == nil || errors.Is(f.err, sqsonce.ErrLeaseLost) || errors.Is(f.err, sqsonce.ErrInProgress) {
		return false
	}
	k, ok := v.known()
	return !ok || k.expires(f.message)
}

func (a queueAttributes) expires(m *sqsonce.Message) bool {
	last, known := a.lastRetry(m.SentAt)
	return known && !time.Now().Before(last)
}

// expire sends a failed message whose retention is nearly over to the dead-letter queue.
func (v *invocation) expire(f failure) (sent bool) {
	if !v.mayExpire(f) || !v.attributes(v.sendCtx).expires(f.message) {
		return false
	}
	f.expires, f.err = true, fmt.Errorf("%w: %w", errExpires, f.err)
	if v.deadLetter(f) {
		return true
	}
	v.log.WarnContext(v.contextOf(f.slot), "lambda: SQS deletes the message soon, when its retention ends, and does not move it to the dead-letter queue", f.about()...)
	return false
}

// inTime shortens a delay to what the message's retention leaves; where that is nothing it comes back soon, for another attempt.
func (a queueAttributes) inTime(retry, sentAt time.Time) time.Time {
	last, known := a.lastRetry(sentAt)
	switch now := time.Now(); {
	case !known || retry.Before(last):
		return retry
	case now.Before(last):
		return last
	default:
		return now.Add(min(retry.Sub(now), a.visibility/2))
	}
}
