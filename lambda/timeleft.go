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
	return !errors.Is(f.err, sqsonce.ErrLeaseLost) && !errors.Is(f.err, sqsonce.ErrInProgress) && v.mayBeLast(f.message.SentAt)
}

func (v *invocation) mayBeLast(sentAt time.Time) bool {
	k, ok := v.known()
	return v.opts.Client != nil && (!ok || k.expires(sentAt))
}

// isLastTime reports whether a message is delivered in the last part of its retention, as far as the process has read it.
func (v *invocation) isLastTime(record int) bool {
	k, _ := v.known()
	return v.opts.Client != nil && k.expires(v.sentAt(record))
}

func (a queueAttributes) expires(sentAt time.Time) bool {
	last, known := a.lastRetry(sentAt)
	return known && !time.Now().Before(last)
}

// expire sends a failed message whose retention is nearly over to the dead-letter queue.
func (v *invocation) expire(f failure) (sent bool) {
	if !v.mayExpire(f) || !v.attributes(v.sendCtx).expires(f.message.SentAt) {
		return false
	}
	f.expires, f.err = true, fmt.Errorf("%w: %w", errExpires, f.err)
	if v.deadLetter(f) {
		return true
	}
	v.log.WarnContext(v.contextOf(f.slot), "lambda: SQS deletes the message soon, when its retention ends, and does not move it to the dead-letter queue", f.about()...)
	return false
}

// mayExpireBehind reports whether a FIFO message that was not started, behind one that ran, is, or may be, delivered for the last time. A
// copy of a message that ran is not: its handler may have succeeded.
func (v *invocation) mayExpireBehind(record int) bool {
	rec := &v.records[record]
	if v.slots[record].head || !host.IsFIFO(rec.QueueARN) {
		return false
	}
	for i := range v.records {
		if s := &v.slots[i]; v.records[i].ID == rec.ID && !s.is(unstarted) && !s.is(notStarted) {
			return false
		}
	}
	return v.mayBeLast(v.sentAt(record))
}

// expireBehind sends the messages of a chain that were not started, and whose retention is nearly over, to the dead-letter queue, in
// their order. Then the chain has ended. SQS would delete them unrun, soon after the message that they were behind.
func (v *invocation) expireBehind(chain []int) {
	for i, record := range chain {
		if s := &v.slots[record]; v.mayExpireBehind(record) {
			s.change(unstarted, notStarted)
			var m sqsonce.Message
			v.records[record].fill(&m, v.killAt)
			s.sent.Store(v.expire(failure{chain: chain[i:], slot: s, message: &m, ctx: v.sendCtx, err: errNotStarted, unstarted: true}))
		}
	}
	v.closeChain()
}

func (v *invocation) sentAt(record int) time.Time {
	return host.Millis(v.records[record].Attributes.SentAt)
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
