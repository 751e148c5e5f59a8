package sqsworker

import (
	"context"
	"time"
)

// sendTimeout bounds a send to the dead-letter queue, with the SDK's own retries.
const sendTimeout = 10 * time.Second

// reject sends the message to the dead-letter queue and deletes it when that is confirmed, in this order: a crash in
// between leaves it in both queues rather than in none.
func (l *loop) reject(d *delivery, v verdict) {
	if !l.queue.hasDLQ() {
		l.noDLQ.Do(func() {
			l.log.Error("sqsworker: message rejected, but no dead-letter queue is known: it is delivered again",
				keyMessage, d.m.ID, keyError, errNoDLQ)
		})
		l.notSent(d, v)
		return
	}
	if !d.lease.live(l.now()) {
		l.lose(d, "visibility timeout passed before the dead-letter queue", nil)
		l.settle(v)
		return
	}
	l.set(d, rejecting)
	l.call(func() func() {
		ctx, cancel := context.WithTimeout(l.callCtx, sendTimeout)
		defer cancel()
		err := l.sendToDeadLetter(ctx, d.m, v.err)
		v.settle(err == nil)
		return func() {
			if err != nil {
				l.log.Error("sqsworker: message not sent to the dead-letter queue", keyMessage, d.m.ID, keyError, err)
			} else {
				l.counters.rejected.Add(1)
			}
			switch {
			case d.lease.lost:
				if err == nil {
					l.remember(d)
				}
				l.leave(d)
			case err != nil:
				l.notSent(d, v)
			default:
				d.rejected = true
				l.delete(d)
			}
		}
	})
}

// notSent treats a rejected message as any other that failed.
func (l *loop) notSent(d *delivery, v verdict) {
	v.noSend = true
	l.settle(v)
	l.failed(d, v)
}

// settle tells middleware that the message is not in the dead-letter queue. It may call a store, so not on the loop; a
// second time does nothing.
func (l *loop) settle(v verdict) {
	l.call(func() func() {
		v.settle(false)
		return func() {}
	})
}
